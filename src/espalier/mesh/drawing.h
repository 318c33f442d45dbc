#pragma once
// A sharding for the eye: boxes with device names in Unicode, uneven parts to scale, offsets on the edges. Plain text, UTF-8, no colours.
#include <string>

#include "espalier/base/dims.h"
#include "espalier/mesh/device_mesh.h"
#include "espalier/mesh/sharding.h"
#include "espalier/mesh/tensor_layout.h"

namespace espalier {

// "NamedSharding(mesh={'data': 2, 'model': 4}, spec=(None, 'model'))".
std::string named_sharding(const TensorLayout& layout, const DeviceMesh& mesh);
std::string named_sharding(const Sharding& sharding, const DeviceMesh& mesh);

struct DrawOptions {
  int width = 80;      // columns of the terminal; below 40 counts as 40
  int max_rows = 8;    // rows of boxes; more are counted: "… 56 more"
  int max_slices = 4;  // of tensors of rank 3 and up; likewise
};

// (32, 64) as (None, 'model') on {'data': 2, 'model': 4}:
//      0              16             32             48             64
//    0 ┌──────────────┬──────────────┬──────────────┬──────────────┐
//      │ cpu:0, cpu:4 │ cpu:1, cpu:5 │ cpu:2, cpu:6 │ cpu:3, cpu:7 │
//   32 └──────────────┴──────────────┴──────────────┴──────────────┘
// Rank 1 is a row, rank 2 a grid, more a grid of the last two dims for each part of the leading ones, titled "[0:2, :, :]". A scalar is
// one cell. Devices that hold nothing are listed below: "empty: cpu:5, cpu:6". What does not fit is counted, so that a thousand devices
// still give a short picture. Every line ends in a newline.
std::string draw_sharding(const Sharding& sharding, const Dims& shape, const DeviceMesh& mesh, const DrawOptions& options = {});

}  // namespace espalier
