// numpy's .npz, the single .npy in it, and the samples made of them.
#include <limits>

#include "espalier/data/npy.h"
#include "espalier/data/open.h"
#include "held_file.h"

using namespace espalier;

namespace {

void read_arrays(const fuzz::HeldFile& files) {
  NpzReader npz(files, "x.npz");
  int left = 4;  // directory entries may all name the same bytes: work is bounded by what is asked for
  for (const std::string& name : npz.names()) {
    if (left-- == 0) break;
    fuzz::require(npz.contains(name), "a name that is not found");
    Array array = npz.read(name);
    fuzz::require(array.bytes() >= 0 && array.values != nullptr, "an array without values");
  }
}

void read_samples(const fuzz::HeldFile& files) {
  FieldSpec input{"image", FieldRole::kInput, {2, 2}, Values::kReal, 0}, target{"class", FieldRole::kTarget, {}, Values::kClass, 10};
  auto dataset = open_dataset(files, "x.npz", {{input, target}, DataSplit::kTrain, {}, 0});
  std::vector<int64_t> samples = {0, dataset->size() - 1};
  std::vector<float> values(2 * 4);
  std::vector<int32_t> classes(2);
  dataset->read(0, samples, values.data());
  dataset->read(1, samples, classes.data());
}

void read_single(const std::string& text) {
  fuzz::HeldFile files(text);
  auto file = files.open("x.npy");
  Stream stream(*file, 0, file->size(), Coding::kPlain, "'x.npy'");
  read_npy(stream);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = fuzz::text_of(data, size);
  if (text.starts_with("\x93NUMPY")) {
    fuzz::check(size, {1 << 18, 8}, [&] { read_single(text); });
    return 0;
  }
  fuzz::HeldFile files(text);
  // Deflate expands at most 1032 times; Fortran order needs a second copy; a dataset holds two arrays.
  const fuzz::Allowance allowance{1 << 18, 1032 * 3};
  fuzz::check(size, allowance, [&] { read_arrays(files); });
  fuzz::check(size, allowance, [&] { read_samples(files); });
  return 0;
}
