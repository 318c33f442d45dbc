#pragma once
// From the word behind `--data` to samples bound to a model's inputs and targets.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/file.h"
#include "espalier/data/dataset.h"
#include "espalier/data/idx.h"

namespace espalier {

struct DataRequest {
  std::vector<FieldSpec> fields;        // what the model takes; leave the targets out to predict
  DataSplit split = DataSplit::kTrain;  // sources without a test split are read whole either way
  std::optional<int64_t> samples = {};  // use the first N; all that there are without it, and 1024 of synthetic
  uint64_t seed = 0;                    // of synthetic
};

// `name`:
//   fashion-mnist       Debian's package dataset-fashion-mnist: images (28, 28) of 0 to 255, labels 0 to 9; 60,000 train, 10,000 test
//   synthetic           made up (synthetic.h)
//   a directory         MNIST's IDX files (idx.h): one input, at most one target
//   a .npz file         an array named as the input or output, else `x` when there is one input and `y` when there is one target;
//                       other arrays are left alone
// Fields of the result are request.fields, in order. Errors (kUsage): no such data set or file, with the nearest name or the package to
// install; what does not fit the model (see make_dataset); damaged files. kStorage: reading failed.
std::unique_ptr<Dataset> open_dataset(const FileSystem& files, const std::string& name, const DataRequest& request);

// Whether the source has test samples apart from its training samples. False also when there is no such source.
bool has_test_split(const FileSystem& files, const std::string& name);

}  // namespace espalier
