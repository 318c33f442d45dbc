#include "bench/products.h"

#include <fmt/format.h>

#include <dnnl.hpp>
#include <limits>
#include <unordered_map>

#include "bench/clock.h"
#include "espalier/base/pages.h"

namespace espalier::bench {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

// Templates, so that what the other version of oneDNN (2.x, 3.x) would take is not compiled.
template <class Ops>
void append_relu(Ops& ops) {
  constexpr auto relu = dnnl::algorithm::eltwise_relu;
  if constexpr (requires { ops.append_eltwise(1.0f, relu, 0.0f, 0.0f); })
    ops.append_eltwise(1.0f, relu, 0.0f, 0.0f);
  else
    ops.append_eltwise(relu, 0.0f, 0.0f);
}

template <class Matmul>
typename Matmul::primitive_desc describe(const dnnl::engine& engine, const memory::desc& a, const memory::desc& b, const memory::desc* bias,
                                         const memory::desc& c, bool relu) {
  dnnl::post_ops ops;
  if (relu) append_relu(ops);
  dnnl::primitive_attr attr;
  attr.set_post_ops(ops);
  if constexpr (requires { typename Matmul::desc; })
    return {bias ? typename Matmul::desc(a, b, *bias, c) : typename Matmul::desc(a, b, c), attr, engine};
  else
    return bias ? typename Matmul::primitive_desc(engine, a, b, *bias, c, attr) : typename Matmul::primitive_desc(engine, a, b, c, attr);
}

struct Tags {
  Tag a = Tag::ab, b = Tag::ab;
};

// `ba` is a plain matrix read as its transpose.
std::vector<Tags> forms_of(ProductKind kind) {
  switch (kind) {
    case ProductKind::kForward:
      return {{Tag::ab, Tag::any}};
    case ProductKind::kInputGradient:
      return {{Tag::ab, Tag::ba}, {Tag::ab, Tag::any}};
    case ProductKind::kWeightGradient:
      return {{Tag::ba, Tag::ab}, {Tag::ba, Tag::any}, {Tag::any, Tag::any}};
  }
  return {};
}

}  // namespace

const char* to_string(ProductKind kind) {
  switch (kind) {
    case ProductKind::kForward:
      return "forward";
    case ProductKind::kInputGradient:
      return "input gradient";
    case ProductKind::kWeightGradient:
      return "weight gradient";
  }
  return "";
}

std::vector<Product> products_of(const std::vector<int64_t>& widths, int64_t batch) {
  std::vector<Product> products;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const int64_t in = widths[i], out = widths[i + 1];
    const std::string layer = i == 0 ? "sequential/dense" : fmt::format("sequential/dense_{}", i);
    products.push_back({layer, ProductKind::kForward, batch, in, out, i + 2 < widths.size()});
    if (i > 0) products.push_back({layer, ProductKind::kInputGradient, batch, out, in});
    products.push_back({layer, ProductKind::kWeightGradient, in, batch, out});
  }
  return products;
}

struct BestProduct::Form {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::vector<Pages> pages;
  dnnl::matmul primitive;
  std::unordered_map<int, memory> arguments;

  Form(const Product& product, const Tags& tags) {
    constexpr auto f32 = memory::data_type::f32;
    const memory::desc a({product.m, product.k}, f32, tags.a), b({product.k, product.n}, f32, tags.b);
    const memory::desc bias({1, product.n}, f32, Tag::ab), c({product.m, product.n}, f32, Tag::ab);
    const bool forward = product.kind == ProductKind::kForward;
    const auto description = describe<dnnl::matmul>(engine, a, b, forward ? &bias : nullptr, c, product.relu);
    primitive = dnnl::matmul(description);
    add(DNNL_ARG_SRC, description.src_desc());
    add(DNNL_ARG_WEIGHTS, description.weights_desc());
    add(DNNL_ARG_DST, description.dst_desc());
    if (forward) add(DNNL_ARG_BIAS, bias);
  }

  void add(int argument, const memory::desc& desc) {
    pages.emplace_back(static_cast<int64_t>(desc.get_size()));
    auto* values = reinterpret_cast<float*>(pages.back().data());
    for (size_t i = 0; i < desc.get_size() / sizeof(float); ++i) values[i] = 0.1f * static_cast<float>(i % 7) - 0.3f;
    arguments.emplace(argument, memory(desc, engine, values));
  }

  double run() {
    return seconds_of([&] {
      primitive.execute(stream, arguments);
      stream.wait();
    });
  }
};

BestProduct::BestProduct(const Product& product) {
  double best = std::numeric_limits<double>::infinity();
  for (const Tags& tags : forms_of(product.kind)) {
    auto form = std::make_unique<Form>(product, tags);
    std::vector<double> seconds;
    for (int i = 0; i < 5 || (i < 50 && seconds.back() < 1e-3); ++i) seconds.push_back(form->run());
    if (const double once = median(seconds); once < best) best = once, form_ = std::move(form);
  }
}
BestProduct::~BestProduct() = default;
BestProduct::BestProduct(BestProduct&&) noexcept = default;

double BestProduct::run() { return form_->run(); }

}  // namespace espalier::bench
