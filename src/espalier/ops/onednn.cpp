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

// Products of fewer multiplications than this are done by the calling thread: some 30 us of one core, where waking a team costs 5 us on
// an idle machine and a scheduler's time slice on a busy one.
constexpr int64_t kTeamMultiplications = 1 << 20;

int worthwhile_threads(const MatrixView& a, const MatrixView& b, int threads) {
  int64_t multiplications = b.sizes.back();
  for (int64_t size : a.sizes) multiplications *= size;
  return multiplications < kTeamMultiplications ? 1 : std::min(threads, omp_get_thread_limit());  // OMP_THREAD_LIMIT: the user's word
}

dnnl::memory::desc describe(const MatrixView& view) { return {view.sizes, dnnl::memory::data_type::f32, view.strides}; }

// A template, so that the branch of the other version is not compiled.
template <class Matmul>
typename Matmul::primitive_desc describe_matmul(const dnnl::engine& engine, const MatrixView& a, const MatrixView& b, const MatrixView& c) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if constexpr (requires { typename Matmul::desc; })  // 2.x
    return {typename Matmul::desc(describe(a), describe(b), describe(c)), attr, engine};
  else
    return {engine, describe(a), describe(b), describe(c), attr};
}

struct Prepared {
  dnnl::engine engine;
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
};

}  // namespace

MatmulPrimitive make_matmul(const MatrixView& a, const MatrixView& b, const MatrixView& c, int most_threads) {
  const int threads = worthwhile_threads(a, b, most_threads);
  TeamSize team(threads);
  try {
    auto prepared = std::make_shared<Prepared>();
    prepared->engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
    prepared->description = describe_matmul<dnnl::matmul>(prepared->engine, a, b, c);
    prepared->primitive = dnnl::matmul(prepared->description);
    auto run = [prepared, threads](const void* a_data, const void* b_data, void* c_data, void* scratch) {
      TeamSize run_team(threads);
      const auto& [engine, description, primitive] = *prepared;
      auto memory = [&engine = engine](const dnnl::memory::desc& desc, const void* data) {
        return dnnl::memory(desc, engine, const_cast<void*>(data));  // the interface has no read-only memory
      };
      dnnl::stream stream(engine);
      primitive.execute(stream, {{DNNL_ARG_SRC, memory(description.src_desc(), a_data)},
                                 {DNNL_ARG_WEIGHTS, memory(description.weights_desc(), b_data)},
                                 {DNNL_ARG_DST, memory(description.dst_desc(), c_data)},
                                 {DNNL_ARG_SCRATCHPAD, memory(description.scratchpad_desc(), scratch)}});
      stream.wait();
    };
    return {.run = run, .scratch_bytes = static_cast<int64_t>(prepared->description.scratchpad_desc().get_size())};
  } catch (const dnnl::error& error) {
    throw Error(ErrorKind::kUsage, fmt::format("oneDNN refuses a matrix product: {}", error.what()),
                fmt::format("sizes ({}) x ({})", fmt::join(a.sizes, ", "), fmt::join(b.sizes, ", ")));
  }
}

}  // namespace espalier::ops
