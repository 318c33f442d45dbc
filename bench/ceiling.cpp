#include "bench/ceiling.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/ceiling.cpp"
#include "espalier/ops/simd_targets.h"
// After the targets:
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace espalier::bench::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Multiply-adds of one vector, 12 independent chains a round: a core with two pipes and four cycles of latency needs 8, and 12 with two
// operands fit in 16 registers. Each chain has a start of its own, or a compiler would see that all are one. Returns a vector's elements.
size_t multiply_adds(int64_t rounds, float* start) {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, 0.999f), b = hn::Set(d, 1e-3f);
  auto v0 = hn::Set(d, start[0]), v1 = hn::Set(d, start[1]), v2 = hn::Set(d, start[2]), v3 = hn::Set(d, start[3]);
  auto v4 = hn::Set(d, start[4]), v5 = hn::Set(d, start[5]), v6 = hn::Set(d, start[6]), v7 = hn::Set(d, start[7]);
  auto v8 = hn::Set(d, start[8]), v9 = hn::Set(d, start[9]), v10 = hn::Set(d, start[10]), v11 = hn::Set(d, start[11]);
  for (int64_t i = 0; i < rounds; ++i) {
    v0 = hn::MulAdd(v0, a, b), v1 = hn::MulAdd(v1, a, b), v2 = hn::MulAdd(v2, a, b), v3 = hn::MulAdd(v3, a, b);
    v4 = hn::MulAdd(v4, a, b), v5 = hn::MulAdd(v5, a, b), v6 = hn::MulAdd(v6, a, b), v7 = hn::MulAdd(v7, a, b);
    v8 = hn::MulAdd(v8, a, b), v9 = hn::MulAdd(v9, a, b), v10 = hn::MulAdd(v10, a, b), v11 = hn::MulAdd(v11, a, b);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(v0, v1), hn::Add(v2, v3)), hn::Add(hn::Add(v4, v5), hn::Add(v6, v7)));
  start[0] = hn::GetLane(hn::Add(sum, hn::Add(hn::Add(v8, v9), hn::Add(v10, v11))));
  return hn::Lanes(d);
}

void triad(float* a, const float* b, const float* c, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  const auto three = hn::Set(d, 3.0f);
  for (int64_t i = begin; i < end; i += static_cast<int64_t>(hn::Lanes(d)))
    hn::StoreU(hn::MulAdd(three, hn::LoadU(d, c + i), hn::LoadU(d, b + i)), d, a + i);
}

void update(float* a, const float* b, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  for (int64_t i = begin; i < end; i += static_cast<int64_t>(hn::Lanes(d)))
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, a + i);
}

}  // namespace
}  // namespace espalier::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "bench/clock.h"
#include "espalier/base/cores.h"
#include "espalier/base/pages.h"

namespace espalier::bench {
namespace {

HWY_EXPORT(multiply_adds);
HWY_EXPORT(triad);
HWY_EXPORT(update);

constexpr int kChains = 12;  // of multiply_adds
// The best of many short trials: on a shared machine most of them have company.
constexpr int kTrials = 60, kBandwidthTrials = 10;
constexpr int64_t kElements = int64_t{64} << 20;  // of each of three arrays: two of 256 MiB are beyond the last cache of today's machines
constexpr int64_t kRounds = 1'000'000;            // some 8 ms of multiply-adds

// Seconds that body(thread) takes on `threads` pinned threads at once, from when all are ready until the last has ended.
double together(int threads, const std::function<void(int)>& body) {
  const std::vector<int> cores = available_cores();
  std::atomic<int> ready{0}, left{threads};
  std::atomic<bool> go{false};
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t)
    team.emplace_back([&, t] {
      PinnedThread pinned(cores[static_cast<size_t>(t) % cores.size()]);
      ++ready;
      while (!go) {
      }
      body(t);
      --left;
    });
  while (ready < threads) std::this_thread::yield();
  const double start = now_seconds();
  go = true;
  for (std::thread& thread : team) thread.join();
  return now_seconds() - start;
}

double best_gflops(int threads) {
  double best = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::atomic<size_t> lanes{0};
    std::atomic<float> sink{0};  // a result that is looked at is computed
    const double seconds = together(threads, [&](int) {
      float start[kChains];
      for (int c = 0; c < kChains; ++c) start[c] = 1.0f + 0.1f * static_cast<float>(c);
      lanes = HWY_DYNAMIC_DISPATCH(multiply_adds)(kRounds, start);
      sink = sink + start[0];
    });
    best = std::max(best, 2e-9 * kChains * kRounds * static_cast<double>(lanes) * threads / seconds);
  }
  return best;
}

// GB/s of a body that is given each thread's part of the arrays, whole vectors of any length.
double best_bandwidth(int threads, int bytes_an_element, const std::function<void(int64_t, int64_t)>& body) {
  double best = 0;
  for (int trial = 0; trial < kBandwidthTrials; ++trial) {
    const double seconds =
        together(threads, [&](int t) { body(kElements * t / threads / 512 * 512, kElements * (t + 1) / threads / 512 * 512); });
    best = std::max(best, 1e-9 * bytes_an_element * static_cast<double>(kElements) / seconds);
  }
  return best;
}

}  // namespace

Ceiling measure_ceiling(int cores) {
  Ceiling ceiling{.cores = cores, .gflops = best_gflops(cores)};
  std::vector<Pages> pages;
  float* array[3];
  for (float*& one : array) {
    pages.emplace_back(kElements * int64_t{sizeof(float)});
    one = reinterpret_cast<float*>(pages.back().data());
    std::fill_n(one, kElements, 1.0f);
  }
  float *a = array[0], *b = array[1], *c = array[2];
  ceiling.copy = best_bandwidth(cores, 8, [&](int64_t i, int64_t e) { std::memcpy(a + i, b + i, static_cast<size_t>(e - i) * 4); });
  ceiling.triad = best_bandwidth(cores, 12, [&](int64_t i, int64_t e) { HWY_DYNAMIC_DISPATCH(triad)(a, b, c, i, e); });
  ceiling.update = best_bandwidth(cores, 12, [&](int64_t i, int64_t e) { HWY_DYNAMIC_DISPATCH(update)(a, b, i, e); });
  return ceiling;
}

double round_trip_ns() {
  constexpr int kTrips = 2000;  // below a millisecond
  if (available_cores().size() < 2) return 0;
  const int last = available_cores().back(), first = available_cores().front();
  std::atomic<int> turn{-1};
  std::thread other([&] {
    PinnedThread pinned(last);
    turn = 0;
    for (int trip = 0; trip < kTrips; ++trip) {
      while (turn != 2 * trip + 1) {
      }
      turn = 2 * trip + 2;
    }
  });
  PinnedThread pinned(first);
  while (turn != 0) std::this_thread::yield();
  const double start = now_seconds();
  for (int trip = 0; trip < kTrips; ++trip) {
    turn = 2 * trip + 1;
    while (turn != 2 * trip + 2) {
    }
  }
  const double seconds = now_seconds() - start;
  other.join();
  return 1e9 * seconds / kTrips;
}

}  // namespace espalier::bench
#endif
