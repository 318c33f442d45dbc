#include "espalier/ops/contraction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "espalier/ops/onednn.h"

namespace espalier::ops {
namespace {

constexpr const char* kForms = "write it as \"mk,kn->mn\", transposed (\"mk,nk->mn\") or with batch letters (\"bmk,bkn->bmn\")";

bool has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

void check_letters(const Contraction& form, const std::string& factors, const std::string& where) {
  for (const std::string* tensor : {&form.a, &form.b, &form.result})
    for (char letter : *tensor) {
      if (std::isalpha(static_cast<unsigned char>(letter)) == 0)
        usage_error(fmt::format("'{}' in the factors \"{}\" is no letter", letter, factors), where, kForms);
      if (std::count(tensor->begin(), tensor->end(), letter) > 1)
        usage_error(fmt::format("letter '{}' stands twice in one tensor of \"{}\"", letter, factors), where, kForms);
      if (has(form.a, letter) + has(form.b, letter) + has(form.result, letter) < 2)
        usage_error(fmt::format("letter '{}' stands in one tensor only of \"{}\"", letter, factors), where, kForms);
    }
}

void check_together(const std::string& letters, const std::string& tensor, const std::string& factors, const std::string& where) {
  if (tensor.find(letters) == std::string::npos)
    usage_error(fmt::format("letters '{}' have to stand together and in one order in \"{}\"", letters, factors), where,
                "transpose an operand first, or " + std::string(kForms));
}

// The size and stride of letters that stand together in a tensor; (1, 1) for none.
struct Extent {
  int64_t size = 1, stride = 1;
};
Extent extent(const std::string& letters, const std::string& tensor, const Dims& shape) {
  Extent all;
  if (letters.empty()) return all;
  for (char letter : letters) all.size *= shape[static_cast<int>(tensor.find(letter))];
  all.stride = row_major_strides(shape)[static_cast<int>(tensor.find(letters.back()))];
  return all;
}

MatrixView view(const Contraction& form, const std::string& tensor, const Dims& shape, const std::string& rows,
                const std::string& columns) {
  MatrixView view;
  auto add = [&](const std::string& letters) {
    Extent e = extent(letters, tensor, shape);
    view.sizes.push_back(e.size);
    view.strides.push_back(e.stride);
  };
  for (char letter : form.batch) add(std::string(1, letter));
  add(rows);
  add(columns);
  // A matrix of one row or column may call either stride 1: take the one that keeps rows together.
  size_t r = view.sizes.size() - 2, c = r + 1;
  if (view.sizes[r] == 1) view.strides[r] = view.sizes[c] * view.strides[c];
  if (view.sizes[c] == 1) view.strides[c] = 1;
  return view;
}

// c is written row by row; a result whose rows are columns is the product of the transposes.
Contraction transposed(const Contraction& form) { return {form.b, form.a, form.result, form.batch, form.n, form.m, form.k}; }

}  // namespace

Contraction parse_contraction(const std::string& factors, const std::string& where) {
  size_t comma = factors.find(','), arrow = factors.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow)
    usage_error(fmt::format("the factors \"{}\" do not name two operands and a result", factors), where, kForms);
  Contraction form{factors.substr(0, comma), factors.substr(comma + 1, arrow - comma - 1), factors.substr(arrow + 2), "", "", "", ""};
  check_letters(form, factors, where);
  for (char letter : form.a) (!has(form.result, letter) ? form.k : has(form.b, letter) ? form.batch : form.m) += letter;
  for (char letter : form.b)
    if (!has(form.a, letter)) form.n += letter;
  check_together(form.m, form.a, factors, where);
  check_together(form.k, form.a, factors, where);
  check_together(form.k, form.b, factors, where);
  check_together(form.n, form.b, factors, where);
  check_together(form.m, form.result, factors, where);
  check_together(form.n, form.result, factors, where);
  return form;
}

Kernel contraction_kernel(const Contraction& form, const Dims& a, const Dims& b, const Dims& result, int threads) {
  const int64_t elements = result.volume();
  if (elements == 0) return {.run = [](const KernelCall&) {}};
  if (extent(form.k, form.a, a).size == 0)
    return {.run = [elements](const KernelCall& call) { std::memset(call.results[0], 0, static_cast<size_t>(elements) * sizeof(float)); }};
  const bool swapped = extent(form.n, form.result, result).size > 1 && extent(form.n, form.result, result).stride != 1;
  const Contraction f = swapped ? transposed(form) : form;
  MatmulPrimitive product = make_matmul(view(f, f.a, swapped ? b : a, f.m, f.k), view(f, f.b, swapped ? a : b, f.k, f.n),
                                        view(f, f.result, result, f.m, f.n), threads);
  return {.run =
              [product, swapped](const KernelCall& call) {
                product.run(call.operands[swapped ? 1 : 0], call.operands[swapped ? 0 : 1], call.results[0], call.scratch);
              },
          .scratch_bytes = product.scratch_bytes};
}

}  // namespace espalier::ops
