// Uses: ops
// Products made of small ones, in every form, at sizes on both sides of each block's end, against plain loops in double.
#include "espalier/ops/blocked_product.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace espalier::ops {
namespace {

// A matrix that lies in memory row by row or column by column, with room behind each row that nobody may touch.
struct Stored {
  Stored(int64_t rows, int64_t columns, bool by_rows, int64_t room, std::mt19937& random)
      : view{{rows, columns}, by_rows ? std::vector<int64_t>{columns + room, 1} : std::vector<int64_t>{1, rows + room}},
        values(static_cast<size_t>((by_rows ? rows : columns) * ((by_rows ? columns : rows) + room))) {
    for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  }
  const float* at(int64_t i, int64_t j) const { return values.data() + i * view.strides[0] + j * view.strides[1]; }

  MatrixView view;
  std::vector<float> values;
};

enum class Form { kForward, kTransposed, kOuter };

struct Sizes {
  int64_t m, n, k;
};

// Rows of a up to which a b that stays in the cache is not left to the other library: it depends on the processor's registers.
int64_t few_rows() {
  const MatrixView a{{40, 64}, {64, 1}}, b{{64, 64}, {1, 64}}, c{{40, 64}, {64, 1}};
  return make_blocked_product(a, b, c, ProductMode::kWrite, 1) ? 64 : 16;
}

bool left_to_others(Form form, Sizes sizes) {
  switch (form) {
    case Form::kForward:
      return sizes.n < 16;
    case Form::kTransposed:
      return sizes.k < 64 || (sizes.m > few_rows() && sizes.k * sizes.n <= 1 << 19);
    case Form::kOuter:
      return sizes.n < 64;
  }
  return false;
}

// Two operands and their product by plain loops in double, with the sum of the terms' sizes beside it.
struct Problem {
  Problem(Form form, Sizes sizes, std::mt19937& random)
      : form(form),
        sizes(sizes),
        room(static_cast<int64_t>(random() % 3) * 7),
        a(sizes.m, sizes.k, form != Form::kOuter, room, random),
        b(sizes.k, sizes.n, form != Form::kTransposed, room, random),
        c(sizes.m, sizes.n, true, room, random),
        sums(static_cast<size_t>(sizes.m * sizes.n)),
        magnitudes(sums.size()) {
    const int64_t apart = b.view.strides[1];
    for (int64_t i = 0; i < sizes.m; ++i)
      for (int64_t l = 0; l < sizes.k; ++l) {
        const double left = *a.at(i, l);
        const float* right = b.at(l, 0);
        double *sum = &sums[static_cast<size_t>(i * sizes.n)], *magnitude = &magnitudes[static_cast<size_t>(i * sizes.n)];
        for (int64_t j = 0; j < sizes.n; ++j) {  // the only loop that takes time
          const double term = left * static_cast<double>(right[j * apart]);
          sum[j] += term;
          magnitude[j] += term < 0 ? -term : term;
        }
      }
  }

  Form form;
  Sizes sizes;
  int64_t room;
  Stored a, b, c;
  std::vector<double> sums, magnitudes;
};

void check(const Problem& problem, ProductMode mode, int threads) {
  const Sizes sizes = problem.sizes;
  SCOPED_TRACE(fmt::format("form {} m {} n {} k {} {} threads {}", static_cast<int>(problem.form), sizes.m, sizes.n, sizes.k,
                           mode == ProductMode::kAdd     ? "add"
                           : mode == ProductMode::kWrite ? "write"
                                                         : "hand over",
                           threads));
  Stored c = problem.c;
  const auto product = make_blocked_product(problem.a.view, problem.b.view, c.view, mode, threads);
  if (!product && left_to_others(problem.form, sizes)) return;
  if (!product) GTEST_SKIP() << "built without the library of small products, or it has no kernels for this processor";
  std::vector<float> scratch(static_cast<size_t>(product->scratch_bytes) / sizeof(float) + 1, NAN);
  scratch.back() = 17;
  const float scale = mode == ProductMode::kAdd ? -0.5f : 1.0f;
  // What is handed over is put where it belongs; a part that comes twice shows as a wrong sum.
  if (mode == ProductMode::kHandOver) std::fill(c.values.begin(), c.values.end(), 0.0f);
  const Consume consume = [&](int64_t first, int64_t count, const float* values) {
    for (int64_t i = 0; i < count; ++i)
      c.values[static_cast<size_t>((first + i) / sizes.n * c.view.strides[0] + (first + i) % sizes.n)] += values[i];
  };
  product->run({problem.a.values.data(), problem.b.values.data(), c.values.data(), scratch.data(), scale, &consume});
  EXPECT_EQ(scratch.back(), 17) << "written past the scratch space";
  int64_t wrong = 0;
  for (int64_t i = 0; i < sizes.m; ++i)
    for (int64_t j = 0; j < sizes.n + problem.room; ++j) {
      const auto place = static_cast<size_t>(i * c.view.strides[0] + j), element = static_cast<size_t>(i * sizes.n + j);
      const float before = problem.c.values[place];
      if (j >= sizes.n) {
        wrong += c.values[place] != (mode == ProductMode::kHandOver ? 0 : before);
        continue;
      }
      double sum = problem.sums[element];
      if (mode == ProductMode::kAdd) sum = static_cast<double>(before) + static_cast<double>(scale) * sum;
      // Rounding of k additions in float32 is far below 1e-5 of the terms together; a lost or doubled term is not.
      wrong += !(std::fabs(static_cast<double>(c.values[place]) - sum) <= 1e-5 * (1 + problem.magnitudes[element]));
    }
  EXPECT_EQ(wrong, 0) << "elements are wrong";
}

void check_all_modes(Sizes sizes, std::mt19937& random) {
  for (Form form : {Form::kForward, Form::kTransposed, Form::kOuter}) {
    const Problem problem(form, sizes, random);
    for (int threads : {1, 2, 3}) {
      check(problem, ProductMode::kWrite, threads);
      if (form != Form::kOuter) continue;
      for (ProductMode mode : {ProductMode::kAdd, ProductMode::kHandOver}) check(problem, mode, threads);
    }
  }
}

TEST(BlockedProduct, AtTheEndsOfItsBlocks) {
  std::mt19937 random(11);
  for (Sizes sizes : std::vector<Sizes>{{1, 1, 1},
                                        {3, 2, 5},
                                        {64, 128, 32},
                                        {65, 129, 33},
                                        {63, 513, 16},
                                        {128, 256, 512},
                                        {129, 257, 513},
                                        {200, 12, 1025},
                                        {97, 13, 64},
                                        {17, 512, 65},
                                        {130, 300, 1024},
                                        {2, 700, 90},
                                        {700, 2, 90},
                                        {300, 1, 7},
                                        {1, 300, 7},
                                        {192, 24, 2048},
                                        {129, 300, 2049},
                                        {130, 1100, 513},
                                        {96, 31, 1}})
    check_all_modes(sizes, random);
}

TEST(BlockedProduct, OfRandomSizes) {
  const unsigned seed = 2024;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 12; ++i) {
    auto size = [&](unsigned most) { return static_cast<int64_t>(1 + random() % most); };
    check_all_modes({size(210), size(320), size(600)}, random);
  }
}

// b is read in strips when c is too wide to stay in the cache.
TEST(BlockedProduct, OfFewWideRows) {
  std::mt19937 random(5);
  const Problem problem(Form::kForward, {40, 7000, 90}, random);
  for (int threads : {1, 2}) check(problem, ProductMode::kWrite, threads);
}

// More than one group or block of them.
TEST(BlockedProduct, OfManyRows) {
  std::mt19937 random(13);
  const Problem forward(Form::kForward, {530, 70, 90}, random), transposed(Form::kTransposed, {260, 1030, 515}, random),
      outer(Form::kOuter, {600, 70, 90}, random);
  for (int threads : {1, 2}) {
    for (const Problem* problem : {&forward, &transposed, &outer}) check(*problem, ProductMode::kWrite, threads);
    for (ProductMode mode : {ProductMode::kAdd, ProductMode::kHandOver}) check(outer, mode, threads);
  }
}

// As within a parallel region of the caller's.
TEST(BlockedProduct, BySmallerTeamsThanAskedFor) {
  std::mt19937 random(7);
#pragma omp parallel num_threads(2)
#pragma omp single
  {
    for (Sizes sizes : std::vector<Sizes>{{129, 257, 513}, {130, 1100, 513}, {40, 130, 70}})
      for (Form form : {Form::kForward, Form::kTransposed, Form::kOuter}) check(Problem(form, sizes, random), ProductMode::kWrite, 3);
    check(Problem(Form::kOuter, {130, 300, 70}, random), ProductMode::kAdd, 3);
  }
}

TEST(BlockedProduct, LeavesOtherFormsToOthers) {
  const MatrixView plain{{4, 4}, {4, 1}}, transposed{{4, 4}, {1, 4}}, spread{{4, 4}, {8, 2}};
  EXPECT_FALSE(make_blocked_product(plain, plain, transposed, ProductMode::kWrite, 1));  // c column by column
  EXPECT_FALSE(make_blocked_product(spread, plain, plain, ProductMode::kWrite, 1));      // neither rows nor columns lie together
  EXPECT_FALSE(make_blocked_product(transposed, transposed, plain, ProductMode::kWrite, 1));
  EXPECT_FALSE(make_blocked_product(plain, plain, plain, ProductMode::kAdd, 1));
  EXPECT_FALSE(make_blocked_product(plain, plain, plain, ProductMode::kHandOver, 1));
  const MatrixView batch{{2, 4, 4}, {16, 4, 1}};
  EXPECT_FALSE(make_blocked_product(batch, batch, batch, ProductMode::kWrite, 1));
}

}  // namespace
}  // namespace espalier::ops
