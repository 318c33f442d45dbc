#pragma once
// The floor under a training step: its matrix products alone, in oneDNN, with every operand in the form the library likes best, bias and
// relu in the product. What an engine adds shows in how much longer its step takes.
// Not here: how the engine computes its products (ops/).
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace espalier::bench {

enum class ProductKind { kForward, kInputGradient, kWeightGradient };
const char* to_string(ProductKind kind);

// c (m, n) = a (m, k) b (k, n). Of a dense layer in -> out and a batch B: forward B, in, out; input gradient B, out, in; weight gradient
// in, B, out.
struct Product {
  std::string layer;  // "sequential/dense"
  ProductKind kind = ProductKind::kForward;
  int64_t m = 0, k = 0, n = 0;
  bool relu = false;  // of a forward product, which always has its bias
  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n); }
};

// Of a network of dense layers, relu but for the last; the first input needs no gradient.
std::vector<Product> products_of(const std::vector<int64_t>& widths, int64_t batch);

// Prepared on as many OpenMP threads as the caller's team has: the fastest of the forms that its operands may have where a step would
// have them anyway (weights and what is laid out anew in any form, activations plain).
class BestProduct {
 public:
  explicit BestProduct(const Product& product);
  ~BestProduct();
  BestProduct(BestProduct&&) noexcept;
  double run();  // seconds

 private:
  struct Form;
  std::unique_ptr<Form> form_;
};

}  // namespace espalier::bench
