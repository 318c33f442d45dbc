#include "espalier/ops/contraction.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "espalier/ops/blocked_product.h"
#include "espalier/ops/parallel.h"

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

// Products of fewer multiplications than this are done by the calling thread: some 5 us of one core, where waking a team costs 1 to 5 us
// on an idle machine and a scheduler's time slice on a busy one.
constexpr int64_t kTeamMultiplications = 1 << 18;

int worthwhile_threads(const MatrixView& a, const MatrixView& b, int threads) {
  int64_t multiplications = b.sizes.back();
  for (int64_t size : a.sizes) multiplications *= size;
  return multiplications < kTeamMultiplications ? 1 : std::min(threads, omp_get_thread_limit());  // OMP_THREAD_LIMIT: the user's word
}

// A product that is made whole, in scratch space, before it is handed over.
MatmulPrimitive handed_over(const MatmulPrimitive& product, int64_t elements, int threads) {
  return {.run =
              [product, elements, threads](const ProductCall& call) {
                auto* whole = reinterpret_cast<float*>(static_cast<std::byte*>(call.scratch) + product.scratch_bytes);
                product.run({.a = call.a, .b = call.b, .c = whole, .scratch = call.scratch});
                parallel_for(threads, elements, elements,
                             [&](int64_t begin, int64_t end) { (*call.consume)(begin, end - begin, whole + begin); });
              },
          .scratch_bytes = product.scratch_bytes + elements * static_cast<int64_t>(sizeof(float))};
}

// The faster of the two for a form.
MatmulPrimitive make_product(const MatrixView& a, const MatrixView& b, const MatrixView& c, ProductMode mode, int most_threads) {
  const int threads = worthwhile_threads(a, b, most_threads);
  if (std::optional<MatmulPrimitive> blocked = make_blocked_product(a, b, c, mode, threads)) return *blocked;
  if (mode != ProductMode::kHandOver) return make_matmul(a, b, c, mode, threads);
  int64_t elements = 1;
  for (int64_t size : c.sizes) elements *= size;
  return handed_over(make_matmul(a, b, c, ProductMode::kWrite, threads), elements, most_threads);
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

FactorRule with_whole_sums(FactorRule rule) {
  for (Factor& factor : rule.factors)
    if (factor.kind == FactorKind::kReduce) factor.kind = FactorKind::kWhole;
  return rule;
}

double product_flops(const FactorRule& rule) {
  double flops = 2;
  for (const Factor& factor : rule.factors) flops *= static_cast<double>(factor.size);
  return flops;
}

MatmulPrimitive local_product(const LocalOp& op, size_t first, ProductMode mode) {
  const Contraction form = parse_contraction(op.attrs->text("factors"), "product");
  const Dims &a = op.operands[first].shape, &b = op.operands[first + 1].shape, &result = op.results[0].shape;
  const int64_t elements = result.volume();
  if (elements == 0) return {.run = [](const ProductCall&) {}};
  if (extent(form.k, form.a, a).size == 0) {
    if (mode == ProductMode::kAdd) return {.run = [](const ProductCall&) {}};
    const MatmulPrimitive zeros{
        .run = [elements](const ProductCall& call) { std::memset(call.c, 0, static_cast<size_t>(elements) * sizeof(float)); }};
    return mode == ProductMode::kHandOver ? handed_over(zeros, elements, op.threads) : zeros;
  }
  const bool swapped = extent(form.n, form.result, result).size > 1 && extent(form.n, form.result, result).stride != 1;
  const Contraction f = swapped ? transposed(form) : form;
  MatmulPrimitive product = make_product(view(f, f.a, swapped ? b : a, f.m, f.k), view(f, f.b, swapped ? a : b, f.k, f.n),
                                         view(f, f.result, result, f.m, f.n), mode, op.threads);
  if (!swapped) return product;
  return {.run =
              [product](ProductCall call) {
                std::swap(call.a, call.b);
                product.run(call);
              },
          .scratch_bytes = product.scratch_bytes};
}

}  // namespace espalier::ops
