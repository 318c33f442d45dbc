#include "espalier/ops/onednn.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <dnnl.hpp>
#include <memory>

#include "espalier/base/error.h"

namespace espalier::ops {
namespace {

// oneDNN's team of threads is OpenMP's, whose size is a property of the calling thread. A primitive divides its work by the size it was
// made for and silently leaves out what a smaller team would have to do, so the team is given exactly that size or none.
class TeamSize {
 public:
  explicit TeamSize(int threads) : before_(omp_get_max_threads()), dynamic_(omp_get_dynamic()) {
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
  }
  ~TeamSize() {
    omp_set_num_threads(before_);
    omp_set_dynamic(dynamic_);
  }
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;

 private:
  int before_, dynamic_;
};

using Desc = dnnl::memory::desc;

Desc describe(const MatrixView& view) { return {view.sizes, dnnl::memory::data_type::f32, view.strides}; }
Desc in_any_form(const MatrixView& view) { return {view.sizes, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any}; }

// Templates, so that the branch of the other version is not compiled.
template <class Matmul>
typename Matmul::primitive_desc describe_matmul(const dnnl::engine& engine, const Desc& a, const Desc& b, const Desc& c, ProductMode mode) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (mode == ProductMode::kAdd) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attr.set_post_ops(sum);
  }
  if constexpr (requires { typename Matmul::desc; })  // 2.x
    return {typename Matmul::desc(a, b, c), attr, engine};
  else
    return {engine, a, b, c, attr};
}

template <class Attr>
constexpr bool kOutputScales = requires(Attr attr) {
  attr.set_output_scales(0, {1.0f});
};  // 2.x

// The argument that holds the scale. By number, since each version names only its own.
template <class Attr>
constexpr int kScaleArgument = kOutputScales<Attr> ? 513 : (4096 | DNNL_ARG_SRC);

template <class Attr>
Attr scaled_at_run_time() {
  Attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if constexpr (kOutputScales<Attr>)
    attr.set_output_scales(0, {DNNL_RUNTIME_F32_VAL});
  else
    attr.set_scales_mask(DNNL_ARG_SRC, 0);
  return attr;
}

// A primitive with its buffers, which change from call to call.
class Bound {
 public:
  void add(int argument, const Desc& desc, const dnnl::engine& engine) {
    memory_.emplace_back(desc, engine, nullptr);
    arguments_.push_back({argument, memory_.back().get()});
  }
  void set(size_t i, const void* data) { memory_[i].set_data_handle(const_cast<void*>(data)); }  // the interface has no read-only memory
  void execute(const dnnl::primitive& primitive, const dnnl::stream& stream) const {
    dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(arguments_.size()), arguments_.data()),
                            "could not run a primitive");
  }

 private:
  std::vector<dnnl::memory> memory_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

// A transposed a makes oneDNN copy both operands block by block, b once for every block of rows. With enough rows it is faster to bring
// b into the form it likes best once, before the product; what is added to c is scaled on that way.
constexpr int64_t kRowsWorthAForm = 256;

bool brings_b_into_form(const MatrixView& a, ProductMode mode) {
  const bool transposed = a.strides.back() != 1, matrix = a.sizes.size() == 2;
  return mode == ProductMode::kAdd || (matrix && transposed && a.sizes[0] >= kRowsWorthAForm);
}

int64_t aligned(size_t bytes) { return static_cast<int64_t>(bytes + 63) / 64 * 64; }

class Product {
 public:
  Product(const MatrixView& a, const MatrixView& b, const MatrixView& c, ProductMode mode, int threads)
      : threads_(threads), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), reforms_(brings_b_into_form(a, mode)) {
    TeamSize team(threads);
    auto description = describe_matmul<dnnl::matmul>(engine_, describe(a), reforms_ ? in_any_form(b) : describe(b), describe(c), mode);
    matmul_ = dnnl::matmul(description);
    for (const auto& [argument, desc] : {std::pair{DNNL_ARG_SRC, description.src_desc()},
                                         {DNNL_ARG_WEIGHTS, description.weights_desc()},
                                         {DNNL_ARG_DST, description.dst_desc()},
                                         {DNNL_ARG_SCRATCHPAD, description.scratchpad_desc()}})
      product_.add(argument, desc, engine_);
    scratch_bytes_ = aligned(description.scratchpad_desc().get_size());
    if (!reforms_) return;
    dnnl::reorder::primitive_desc form(engine_, describe(b), engine_, description.weights_desc(),
                                       scaled_at_run_time<dnnl::primitive_attr>());
    reorder_ = dnnl::reorder(form);
    form_.add(DNNL_ARG_FROM, describe(b), engine_);
    form_.add(DNNL_ARG_TO, description.weights_desc(), engine_);
    form_.add(DNNL_ARG_SCRATCHPAD, form.scratchpad_desc(), engine_);
    form_.add(kScaleArgument<dnnl::primitive_attr>, Desc({1}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::x), engine_);
    form_bytes_ = aligned(description.weights_desc().get_size());
    scratch_bytes_ = std::max(scratch_bytes_, aligned(form.scratchpad_desc().get_size()));
  }

  int64_t scratch_bytes() const { return form_bytes_ + scratch_bytes_; }

  void run(const ProductCall& call) {
    if (threads_ > 1 && omp_get_active_level() >= omp_get_max_active_levels())
      throw Error(ErrorKind::kUsage, fmt::format("no team of {} threads inside a parallel region of OpenMP", threads_), "a matrix product",
                  "run the model outside of it, or with one thread");
    TeamSize team(threads_);
    std::byte* scratch = static_cast<std::byte*>(call.scratch) + form_bytes_;
    if (reforms_) {
      form_.set(0, call.b);
      form_.set(1, call.scratch);
      form_.set(2, scratch);
      form_.set(3, &call.scale);
      form_.execute(reorder_, stream_);
    }
    product_.set(0, call.a);
    product_.set(1, reforms_ ? call.scratch : call.b);
    product_.set(2, call.c);
    product_.set(3, scratch);
    product_.execute(matmul_, stream_);
    stream_.wait();
  }

 private:
  int threads_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  bool reforms_;
  dnnl::primitive matmul_, reorder_;
  Bound product_, form_;
  int64_t scratch_bytes_ = 0, form_bytes_ = 0;
};

}  // namespace

MatmulPrimitive make_matmul(const MatrixView& a, const MatrixView& b, const MatrixView& c, ProductMode mode, int threads) {
  try {
    auto product = std::make_shared<Product>(a, b, c, mode, threads);
    return {.run = [product](const ProductCall& call) { product->run(call); }, .scratch_bytes = product->scratch_bytes()};
  } catch (const dnnl::error& error) {
    throw Error(ErrorKind::kUsage, fmt::format("oneDNN refuses a matrix product: {}", error.what()),
                fmt::format("sizes ({}) x ({})", fmt::join(a.sizes, ", "), fmt::join(b.sizes, ", ")));
  }
}

}  // namespace espalier::ops
