#pragma once
// IDX, the format of MNIST and its kin (Y. LeCun's MNIST page): big endian, plain or gzip. One array a file.
#include <string>

#include "espalier/base/file.h"
#include "espalier/data/array.h"

namespace espalier {

enum class DataSplit { kTrain, kTest };
enum class IdxPart { kImages, kLabels };

// Errors (kUsage) name the file: not IDX, a number type that is not known, more than 8 dims, more claimed than the file can hold, cut off.
Array read_idx(const FileSystem& files, const std::string& path);

// The file of a part in a directory, as MNIST names them: train-images-idx3-ubyte, t10k-labels-idx1-ubyte (or test-..., or
// train-images.idx3-ubyte), with or without .gz; the plain file when both are there. "" when there is none. An Error (kUsage) when two fit.
std::string find_idx(const FileSystem& files, const std::string& directory, DataSplit split, IdxPart part);

}  // namespace espalier
