// IDX files, plain and gzip, and the samples made of them.
#include "espalier/data/dataset.h"
#include "espalier/data/idx.h"
#include "held_file.h"

using namespace espalier;

namespace {

// The widest thing an array can be for a model: one row of numbers, as pixels are.
void read_samples(Array array) {
  if (array.shape.rank() == 0) return;
  Dims sample(array.shape.begin() + 1, array.shape.end());
  FieldSpec field{"x", FieldRole::kInput, sample, sample.empty() ? Values::kClass : Values::kReal, 0};
  auto dataset = make_dataset({field}, {{std::move(array), "'x.idx'"}}, 4);
  std::vector<int64_t> last = {dataset->size() - 1};
  std::vector<float> values(static_cast<size_t>(sample.volume()));
  dataset->read(0, last, values.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::HeldFile files(fuzz::text_of(data, size));
  // Deflate expands at most 1032 times; bytes become floats of four.
  fuzz::check(size, {1 << 18, 1032 * 5}, [&] { read_samples(read_idx(files, "x.idx")); });
  return 0;
}
