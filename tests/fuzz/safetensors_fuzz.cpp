// Weights files: the header, every tensor read whole and in parts, and the header written again.
#include "espalier/checkpoint/safetensors.h"
#include "espalier/checkpoint/safetensors_header.h"
#include "held_file.h"

using namespace espalier;

namespace {

Box whole(const Dims& shape) { return {Dims(shape.rank(), 0), shape}; }

// The upper half of every dim: strips with gaps.
Box corner(const Dims& shape) {
  Box box = whole(shape);
  for (int d = 0; d < shape.rank(); ++d) box.offset[d] = shape[d] / 2, box.shape[d] = shape[d] - shape[d] / 2;
  return box;
}

void write_again(const SafetensorsReader& reader) {
  int64_t bytes = 0;
  for (const TensorSpec& tensor : reader.tensors()) bytes += tensor.shape.volume() * size_of(tensor.type);
  const std::string header = safetensors_header(reader.tensors(), reader.metadata());
  const SafetensorsHeader again = parse_safetensors_header(header.substr(sizeof(uint64_t)), bytes, "w.safetensors");
  fuzz::require(again.tensors == reader.tensors() && again.metadata == reader.metadata(), "a header that reads back differently");
}

template <class T>
void read_tensors(const SafetensorsReader& reader) {
  for (const TensorSpec& tensor : reader.tensors()) {
    fuzz::require(reader.find(tensor.name) == &tensor, "a tensor that is not found");
    for (const Box& box : {whole(tensor.shape), corner(tensor.shape)}) {
      std::vector<T> values(static_cast<size_t>(box.shape.volume()));
      reader.read(tensor.name, box, values.data());
    }
  }
}

bool is_other_model(const SafetensorsReader& reader) {
  reader.check_names(reader.tensors());
  try {
    reader.check_names({{"sequential/dense/kernel", NumberType::kF32, {2, 3}}, {"sequential/dense/bias", NumberType::kF32, {3}}});
    return reader.tensors().size() == 2;
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::HeldFile files(fuzz::text_of(data, size));
  // A JSON value takes 16 bytes and an object's entry some hundred; bytes become floats of four.
  fuzz::check(size, {1 << 18, 64}, [&] {
    SafetensorsReader reader(files, "w.safetensors");
    write_again(reader);
    fuzz::require(is_other_model(reader), "weights of other names that pass for a model's");
    read_tensors<float>(reader);
    read_tensors<int32_t>(reader);  // the first tensor of floats ends it
  });
  return 0;
}
