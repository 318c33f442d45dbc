#pragma once
// All layers.
#include "espalier/nn/layers/activation.h"
#include "espalier/nn/layers/dense.h"
#include "espalier/nn/layers/input.h"
#include "espalier/nn/layers/merging.h"
#include "espalier/nn/layers/normalization.h"
#include "espalier/nn/layers/preprocessing.h"
#include "espalier/nn/layers/regularization.h"
#include "espalier/nn/layers/reshaping.h"
