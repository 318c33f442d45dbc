// Layout files, and what their rules say to the variables of a model.
#include "espalier/cli/layout_file.h"
#include "fuzz.h"

using namespace espalier;

namespace {

const DeviceMesh& mesh() {
  static const DeviceMesh mesh({2, 4}, {"data", "model"});
  return mesh;
}

const std::vector<VariableShape>& variables() {
  static const std::vector<VariableShape> variables = {{"sequential/dense/kernel", {784, 10}},
                                                       {"sequential/dense/bias", {10}},
                                                       {"sequential/dense_1/kernel", {3, 1}},
                                                       {"sequential/dense_1/bias", {1}},
                                                       {"norm/gamma", {}},
                                                       {"experts/kernel", {3, 5, 7}}};
  return variables;
}

void resolve(const std::string& text, Unmatched unmatched) {
  const LayoutMap map = cli::read_layout(text, "layout.json", mesh());
  const Resolution resolution = map.resolve(variables(), unmatched);
  fuzz::require(resolution.variables.size() == variables().size(), "a variable without a layout");
  for (size_t i = 0; i < variables().size(); ++i)
    for (int64_t device = 0; device < mesh().size(); ++device)
      local_shape(resolution.variables[i].sharding, variables()[i].shape, mesh(), device);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = fuzz::text_of(data, size);
  // A compiled regular expression takes some KiB, and a rule is some 20 bytes at least.
  const fuzz::Allowance allowance{16 << 20, 1 << 10};
  fuzz::check(size, allowance, [&] { resolve(text, Unmatched::kReplicate); });
  fuzz::check(size, allowance, [&] { resolve(text, Unmatched::kRefuse); });
  return 0;
}
