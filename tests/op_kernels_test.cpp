// Uses: passes
// What the shared op test does not reach with its small samples: ends of the number range, ties, NaN, tensors of many tiles and threads,
// large bodies, and the exact errors for ops that are written wrongly.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "espalier/base/subnormals.h"
#include "espalier/ir/text.h"
#include "espalier/ops/random_math.h"
#include "espalier/passes/autodiff.h"
#include "expect_error.h"
#include "op_harness.h"
#include "op_reference.h"

namespace espalier::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

Tensor tensor_of(Dims shape, const std::vector<double>& values) {
  Tensor tensor({DType::kF32, shape});
  for (size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<int64_t>(i), values[i]);
  return tensor;
}
Tensor vector_of(const std::vector<double>& values) { return tensor_of({static_cast<int64_t>(values.size())}, values); }

Tensor integers_of(Dims shape, const std::vector<double>& values) {
  Tensor tensor({DType::kI32, shape});
  for (size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<int64_t>(i), values[i]);
  return tensor;
}

Tensor random_tensor(Dims shape, std::mt19937_64& random, double low = -1, double high = 1) {
  Tensor tensor({DType::kF32, shape});
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, std::uniform_real_distribution<double>(low, high)(random));
  return tensor;
}

Tensor run(const std::string& name, const Tensors& operands, const Attrs& attrs = {}) {
  return run_whole(*find_op(name), attrs, operands)[0];
}

// Distance from the right value in units of the last place of a float.
double error_in_ulp(float got, double want) {
  const auto rounded = static_cast<float>(want);
  if (std::isnan(want)) return std::isnan(got) ? 0 : kInf;
  if (std::isinf(rounded) || std::isinf(got) || std::isnan(got)) return got == rounded ? 0 : kInf;
  const double unit = static_cast<double>(std::nextafter(std::fabs(rounded), kInf)) - std::fabs(static_cast<double>(rounded));
  return std::fabs(static_cast<double>(got) - want) / unit;
}

struct Function {
  const char* name;
  double (*reference)(double);
  double ulp, absolute;  // within either
};

class Accuracy : public testing::TestWithParam<Function> {};

TEST_P(Accuracy, OverAllFloats) {
  const Function& function = GetParam();
  std::vector<double> points = {0.0, -0.0, 1,     -1,  kInf,   -kInf, kNan,  88.7, 88.73, 89,
                                103, 105,  -87.4, -88, -103.9, -104,  -1e30, 1e30, 1e-30};
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 99991)
    points.push_back(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
  for (double x = -12; x < 12; x += 0.0037) points.push_back(static_cast<double>(static_cast<float>(x)));
  Tensor x = vector_of(points), y = run(function.name, {x});
  for (int64_t i = 0; i < y.size(); ++i) {
    const double want = function.reference(x.at(i));
    const auto got = static_cast<float>(y.at(i));
    ASSERT_TRUE(error_in_ulp(got, want) <= function.ulp || std::fabs(static_cast<double>(got) - want) <= function.absolute)
        << function.name << "(" << x.at(i) << ") is " << got << " instead of " << want;
  }
}

constexpr double kSubnormal = 1.2e-38;  // below it results may be flushed or coarse
INSTANTIATE_TEST_SUITE_P(
    Ops, Accuracy,
    testing::Values(Function{"exp", [](double x) { return std::exp(x); }, 1.5, kSubnormal},
                    Function{"expm1", [](double x) { return std::expm1(x); }, 4, kSubnormal},
                    Function{"log", [](double x) { return std::log(x); }, 2, 0},
                    Function{"log1p", [](double x) { return std::log1p(x); }, 3, kSubnormal},
                    Function{"tanh", [](double x) { return std::tanh(x); }, 4, kSubnormal},
                    Function{"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 4, 1.2e-38},
                    Function{"erf", [](double x) { return std::erf(x); }, 2, kSubnormal},
                    Function{"sqrt", [](double x) { return std::sqrt(x); }, 0.5, 0},
                    Function{"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 2, 0},
                    Function{"square", [](double x) { return x * x; }, 0.5, kSubnormal},
                    Function{"relu", [](double x) { return x < 0 ? 0 : x; }, 0, 0},
                    Function{"abs", [](double x) { return std::fabs(x); }, 0, 0}, Function{"negate", [](double x) { return -x; }, 0, 0},
                    Function{"sign", [](double x) { return std::isnan(x) ? x
                                                           : x > 0       ? 1.0
                                                           : x < 0       ? -1.0
                                                                         : 0.0; }, 0, 0}),
    [](const auto& info) { return info.param.name; });

TEST(Numbers, NanIsNeverHidden) {
  const Tensor a = vector_of({1, kNan, kNan, 2}), b = vector_of({kNan, 1, kNan, 3});
  for (const char* name : {"maximum", "minimum", "add", "multiply"}) {
    Tensor y = run(name, {a, b});
    for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(y.at(i))) << name << " at " << i;
    EXPECT_FALSE(std::isnan(y.at(3))) << name;
  }
  const Attrs all{{"dims", std::vector<int64_t>{0}}, {"keep", int64_t{0}}};
  std::vector<double> values(40, 1.0);
  for (size_t at : {0u, 5u, 20u, 39u}) {
    std::vector<double> with_nan = values;
    with_nan[at] = kNan;
    for (const char* name : {"reduce_max", "reduce_sum", "logsumexp"})
      EXPECT_TRUE(std::isnan(run(name, {vector_of(with_nan)}, all).at(0))) << name << " at " << at;
    EXPECT_EQ(run("argmax", {vector_of(with_nan)}).at(0), static_cast<double>(at));
  }
}

TEST(Numbers, ExponentialsDoNotOverflow) {
  const Attrs last{{"dims", std::vector<int64_t>{1}}, {"keep", int64_t{0}}}, first{{"dims", std::vector<int64_t>{0}}, {"keep", int64_t{0}}};
  const Tensor x = tensor_of({2, 2}, {1000, 1000, -1000, -1001});
  EXPECT_NEAR(run("logsumexp", {x}, last).at(0), 1000 + std::log(2.0), 1e-4);
  EXPECT_NEAR(run("logsumexp", {x}, last).at(1), -1000 + std::log1p(std::exp(-1.0)), 1e-4);
  EXPECT_EQ(run("logsumexp", {x}, first).at(0), 1000);
  EXPECT_EQ(run("logsumexp", {tensor_of({1, 2}, {-kInf, -kInf})}, last).at(0), -kInf);
  EXPECT_EQ(run("logsumexp", {tensor_of({1, 2}, {-kInf, 3})}, last).at(0), 3);
  for (int64_t dim : {0, 1}) {
    Tensor y = run("softmax", {x}, {{"dim", dim}});
    for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(y.at(i) >= 0 && y.at(i) <= 1) << y.at(i);
  }
  EXPECT_NEAR(run("softmax", {x}, {{"dim", int64_t{1}}}).at(0), 0.5, 1e-6);
}

// What decays ends as zero where the processor can do so at no cost, alone and with the product that makes the gradient, and the mode ends
// with the op.
TEST(Numbers, MomentsDecayToZero) {
  volatile float smallest = std::numeric_limits<float>::min();
  auto half = [&] { return smallest * 0.5f; };
  const bool flushes = [&] {
    const FlushSubnormals flush;
    return half() == 0;
  }();
  EXPECT_GT(half(), 0);
  const double tiny = 1.2e-38, expected = flushes ? 0 : 0.9 * tiny;
  const Tensor w = tensor_of({1, 1}, {1}), m = tensor_of({1, 1}, {tiny}), zero = tensor_of({1, 1}, {0}), rate = tensor_of({}, {0.1});
  Attrs adam{{"beta_1", 0.9}, {"beta_2", 0.9}, {"epsilon", 1e-7}, {"weight_decay", 0.0}};
  for (int moment : {1, 2})
    EXPECT_NEAR(run_whole(*find_op("adam_update"), adam, {w, m, m, zero, rate, rate}, 1)[static_cast<size_t>(moment)].at(0), expected,
                1e-44);
  adam.set("factors", std::string("mk,mn->kn"));
  EXPECT_NEAR(run_whole(*find_op("matmul_adam_update"), adam, {w, m, m, zero, zero, rate, rate}, 1)[1].at(0), expected, 1e-44);
  const Attrs momentum{{"momentum", 0.9}, {"nesterov", int64_t{0}}};
  EXPECT_NEAR(run_whole(*find_op("momentum_update"), momentum, {w, m, zero, rate}, 1)[1].at(0), expected, 1e-44);
  EXPECT_GT(half(), 0);
}

TEST(Numbers, SumsKeepTheirDigits) {
  Tensor x({DType::kF32, {1 << 20}});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, i == 0 ? 1 : 1e-8);
  const double sum = run("reduce_sum", {x}, {{"dims", std::vector<int64_t>{0}}, {"keep", int64_t{0}}}).at(0);
  EXPECT_NEAR(sum, 1 + 1e-8 * ((1 << 20) - 1), 1e-7);
}

TEST(Numbers, ConversionsSaturate) {
  Tensor y = run("to_i32", {vector_of({1.9, -1.9, 3e9, -3e9, kNan, kInf, -kInf, 2147483520.0})});
  const std::vector<double> want = {1, -1, 2147483647, -2147483648.0, 0, 2147483647, -2147483648.0, 2147483520.0};
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(y.at(static_cast<int64_t>(i)), want[i]) << i;
}

TEST(Numbers, MovesKeepTheBitsOfIntegers) {
  Tensor x({DType::kI32, {3, 5}});
  for (size_t i = 0; i < x.words.size(); ++i)
    x.words[i] = 0x7F800001u + static_cast<uint32_t>(i) * 0x01234567u;  // signalling NaNs among them
  Tensor back = run("transpose", {run("transpose", {x}, {{"permutation", std::vector<int64_t>{1, 0}}})},
                    {{"permutation", std::vector<int64_t>{1, 0}}});
  EXPECT_EQ(back, x);
  Tensor repeated = run("broadcast", {x}, {{"shape", std::vector<int64_t>{3, 4, 5}}, {"dims", std::vector<int64_t>{0, 2}}});
  EXPECT_EQ(repeated.type.dtype, DType::kI32);
  for (size_t i = 0; i < 60; ++i) EXPECT_EQ(repeated.words[i], x.words[i / 20 * 5 + i % 5]);
}

TEST(Numbers, LabelsOutsideMatchNothing) {
  const Tensor x = tensor_of({3, 2}, {1, 2, 3, 4, 5, 6}), labels = integers_of({3}, {-1, 1, 2}), lse = vector_of({3, 5, 7}),
               g = vector_of({1, 1, 1});
  EXPECT_EQ(run("take_label", {x, labels}), vector_of({0, 4, 0}));
  EXPECT_EQ(run("one_hot", {labels}, {{"depth", int64_t{2}}}), tensor_of({3, 2}, {0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(run("softmax_cross_entropy", {x, lse, labels}), vector_of({0, 1, 0}));
  Tensor slope = run("softmax_cross_entropy_grad", {x, lse, labels, g});
  for (int64_t i : {0, 1, 4, 5}) EXPECT_EQ(slope.at(i), 0);
}

// --- gradients where finite differences have nothing to say -----------------------------------------------------------------------------

std::vector<Tensor> gradients(const std::string& name, const Tensors& operands, const Attrs& attrs = {}) {
  Graph graph;
  Builder builder(graph);
  std::vector<ValueId> ids;
  for (const Tensor& operand : operands) ids.push_back(graph.add_input(Role::kData, "", operand.type));
  ValueId y = builder.op(name, ids, attrs);
  std::vector<int64_t> dims;
  for (int d = 0; d < builder.shape(y).rank(); ++d) dims.push_back(d);
  ValueId loss = builder.op("reduce_sum", {y}, {{"dims", dims}, {"keep", int64_t{0}}});
  std::vector<ValueId> wanted = differentiate(graph, loss, ids);
  std::vector<Tensor> values = run_graph(graph, operands), result;
  for (ValueId id : wanted) result.push_back(values[static_cast<size_t>(id)]);
  return result;
}

TEST(Ties, AreSharedAsStated) {
  EXPECT_EQ(gradients("relu", {vector_of({0, -1, 1})})[0], vector_of({0, 0, 1}));
  EXPECT_EQ(gradients("abs", {vector_of({0, -1, 1})})[0], vector_of({0, -1, 1}));
  for (const char* name : {"maximum", "minimum"}) {
    std::vector<Tensor> both = gradients(name, {vector_of({2, 1, 5}), vector_of({2, 3, 4})});
    const bool larger = std::string(name) == "maximum";
    EXPECT_EQ(both[0], vector_of({0.5, larger ? 0.0 : 1.0, larger ? 1.0 : 0.0})) << name;
    EXPECT_EQ(both[1], vector_of({0.5, larger ? 1.0 : 0.0, larger ? 0.0 : 1.0})) << name;
  }
  const Attrs rows{{"dims", std::vector<int64_t>{1}}, {"keep", int64_t{0}}};
  EXPECT_EQ(gradients("reduce_max", {tensor_of({2, 4}, {1, 7, 7, 0, 3, 3, 3, 3})}, rows)[0],
            tensor_of({2, 4}, {0, 0.5, 0.5, 0, 0.25, 0.25, 0.25, 0.25}));
}

// --- tensors of many tiles ---------------------------------------------------------------------------------------------------------------

TEST(Tiles, AnyBroadcastIsRight) {
  const uint64_t seed = 77;
  std::mt19937_64 random(seed);
  const int64_t sizes[] = {1, 2, 3, 7, 10, 31, 500, 1023, 1024, 1025, 2500};
  for (int round = 0; round < 300; ++round) {
    Dims result;
    for (uint64_t left = random() % 4 + 1; left > 0 && result.volume() < 3000; --left) result.push_back(sizes[random() % 11]);
    if (result.volume() > 60000) continue;
    Tensors operands;
    for (int i = 0; i < 3; ++i) {
      Dims shape;
      for (int d = i == 0 ? 0 : static_cast<int>(random() % static_cast<uint64_t>(result.rank() + 1)); d < result.rank(); ++d)
        shape.push_back(i > 0 && random() % 2 == 0 ? 1 : result[d]);
      operands.push_back(random_tensor(shape, random));
    }
    std::swap(operands[0], operands[random() % 3]);
    Tensor got = run("select", operands);
    Arrays arrays;
    for (const Tensor& operand : operands) {
      arrays.emplace_back(operand.type.shape);
      for (int64_t i = 0; i < operand.size(); ++i) arrays.back()[i] = operand.at(i);
    }
    Array want = references().at("select")({}, arrays, {got.type.shape})[0];
    for (int64_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got.at(i), want[i]) << "element " << i << " of " << to_string(got.type.shape) << " from "
                                    << to_string(operands[0].type.shape) << ", " << to_string(operands[1].type.shape) << ", "
                                    << to_string(operands[2].type.shape) << ", seed " << seed;
  }
}

// A body with 40 values alive at once needs more tiles than the stack holds.
TEST(Tiles, LargeBodiesAreRight) {
  auto body = std::make_shared<Graph>();
  Builder b(*body);
  const Dims shape{3, 1100};
  ValueId x = body->add_input(Role::kData, "", {DType::kF32, shape}), sum = kNoValue;
  std::vector<ValueId> powers = {x};
  for (int i = 0; i < 40; ++i) powers.push_back(b.op("tanh", {powers.back()}));
  for (ValueId power : powers) sum = sum == kNoValue ? power : b.op("add", {power, sum});
  body->add_output(Role::kResult, "", sum);
  std::mt19937_64 random(5);
  Tensor input = random_tensor(shape, random);
  Tensor got = run("fused", {input}, {{"body", std::shared_ptr<const Graph>(body)}});
  for (int64_t i = 0; i < got.size(); ++i) {
    double power = input.at(i), want = power;
    for (int k = 0; k < 40; ++k) want += power = std::tanh(power);
    ASSERT_NEAR(got.at(i), want, 1e-4) << i;
  }
}

// Results written over operands, one of which is also handed through: every result has to be taken before any is written.
TEST(Tiles, ResultsMayReplaceOperandsInAnyPairing) {
  auto body = std::make_shared<Graph>();
  Builder b(*body);
  const Dims shape{2100};
  ValueId x = body->add_input(Role::kData, "", {DType::kF32, shape}), y = body->add_input(Role::kData, "", {DType::kF32, shape});
  ValueId sum = b.op("add", {x, y}), difference = b.op("subtract", {x, y}), product = b.op("multiply", {sum, y});
  for (ValueId out : {y, difference, product, sum, product}) body->add_output(Role::kResult, "", out);
  const Attrs attrs{{"body", std::shared_ptr<const Graph>(body)}};
  const OpDef& fused = *find_op("fused");
  std::mt19937_64 random(6);
  const Tensors operands = {random_tensor(shape, random), random_tensor(shape, random)};
  const Tensors want = run_whole(fused, attrs, operands);
  EXPECT_EQ(want[0], operands[1]);
  EXPECT_EQ(want[2], run("multiply", {run("add", operands), operands[1]}));
  for (int operand : {0, 1})
    for (int result = 0; result < 5; ++result)
      EXPECT_EQ(run_op(fused, whole_op(fused, attrs, operands), operands, operand, result), want)
          << "result " << result << " over operand " << operand;
}

struct Large {
  std::string name;
  std::vector<Dims> operands;
  Attrs attrs = {};
  double tolerance = 0;  // 0: bit for bit
};

TEST(Threads, OneAndTwoGiveTheSame) {
  using Ints = std::vector<int64_t>;
  const std::vector<Large> list = {
      {"add", {{131, 311}, {311}}},
      {"exp", {{40401}}},
      {"adam_update",
       {{131, 311}, {131, 311}, {131, 311}, {131, 311}, {}, {}},
       {{"beta_1", 0.9}, {"beta_2", 0.999}, {"epsilon", 1e-7}, {"weight_decay", 0.01}}},
      {"reduce_sum", {{131, 311}}, {{"dims", Ints{0}}, {"keep", int64_t{0}}}},
      {"reduce_sum", {{131, 311}}, {{"dims", Ints{1}}, {"keep", int64_t{0}}}},
      {"reduce_sum", {{131, 311}}, {{"dims", Ints{0, 1}}, {"keep", int64_t{0}}}},
      {"reduce_max", {{31, 41, 33}}, {{"dims", Ints{1}}, {"keep", int64_t{1}}}},
      {"logsumexp", {{131, 311}}, {{"dims", Ints{0}}, {"keep", int64_t{0}}}},
      {"logsumexp", {{31, 1401}}, {{"dims", Ints{1}}, {"keep", int64_t{0}}}},
      {"softmax", {{131, 311}}, {{"dim", int64_t{1}}}},
      {"softmax", {{31, 1401}}, {{"dim", int64_t{0}}}},
      {"broadcast", {{311}}, {{"shape", Ints{131, 311}}, {"dims", Ints{1}}}},
      {"transpose", {{131, 311}}, {{"permutation", Ints{1, 0}}}},
      {"slice", {{131, 311}}, {{"begin", Ints{1, 2}}, {"size", Ints{130, 103}}, {"step", Ints{1, 3}}}},
      {"pad", {{131, 311}}, {{"before", Ints{1, 2}}, {"after", Ints{0, 3}}}},
      {"concat", {{131, 311}, {131, 7}}, {{"dim", int64_t{1}}}},
      {"random_normal",
       {},
       {{"shape", Ints{131, 311}},
        {"mean", 0.0},
        {"stddev", 1.0},
        {"truncated", int64_t{0}},
        {"seed", int64_t{1}},
        {"stream", int64_t{2}}}},
      {"random_uniform", {}, {{"shape", Ints{131, 311}}, {"low", 0.0}, {"high", 1.0}, {"seed", int64_t{1}}, {"stream", int64_t{2}}}},
      {"argmax", {{1001, 41}}},
      {"matmul", {{101, 401}, {401, 203}}, {{"factors", std::string("mk,kn->mn")}}, 1e-5},
      {"matmul", {{401, 101}, {401, 203}}, {{"factors", std::string("km,kn->mn")}}, 1e-5},
      {"matmul_momentum_update",
       {{131, 311}, {131, 311}, {101, 131}, {101, 311}, {}},
       {{"factors", std::string("mk,mn->kn")}, {"momentum", 0.9}, {"nesterov", int64_t{1}}},
       1e-5},
      {"matmul_adam_update",
       {{131, 311}, {131, 311}, {131, 311}, {101, 131}, {101, 311}, {}, {}},
       {{"beta_1", 0.9}, {"beta_2", 0.999}, {"epsilon", 1e-7}, {"factors", std::string("mk,mn->kn")}, {"weight_decay", 0.01}},
       1e-5},
  };
  std::mt19937_64 random(8);
  for (const Large& large : list) {
    Tensors operands;
    for (const Dims& shape : large.operands) operands.push_back(random_tensor(shape, random, 0, 1));
    const OpDef& def = *find_op(large.name);
    Tensors one = run_whole(def, large.attrs, operands, 1), two = run_whole(def, large.attrs, operands, 2);
    Arrays arrays;
    for (const Tensor& operand : operands) {
      arrays.emplace_back(operand.type.shape);
      for (int64_t i = 0; i < operand.size(); ++i) arrays.back()[i] = operand.at(i);
    }
    std::vector<Dims> shapes;
    for (const Tensor& result : one) shapes.push_back(result.type.shape);
    Arrays want;  // the slow reference of a large product takes seconds
    if (large.tolerance == 0) want = references().at(large.name)(large.attrs, arrays, shapes);
    for (size_t r = 0; r < one.size(); ++r) {
      EXPECT_EQ(difference(two[r], one[r], large.tolerance, large.tolerance == 0), "") << large.name;
      for (int64_t i = 0; r < want.size() && i < one[r].size(); ++i)
        ASSERT_TRUE(close(one[r].at(i), want[r][i], 1e-5))
            << large.name << " element " << i << ": " << one[r].at(i) << " instead of " << want[r][i];
    }
  }
}

// Where OpenMP gives no team, the library would leave out what the others were to do.
TEST(Threads, AProductThatCannotHaveItsTeamIsRefused) {
  std::mt19937_64 random(8);
  const Tensors operands = {random_tensor({2, 101, 101}, random, 0, 1), random_tensor({2, 101, 101}, random, 0, 1)};
  const Attrs attrs = {{"factors", std::string("bmk,bkn->bmn")}};
  run_whole(*find_op("matmul"), attrs, operands, 2);
#pragma omp parallel num_threads(2)
#pragma omp single
  expect_error(ErrorKind::kUsage, {"no team of 2 threads", "inside a parallel region of OpenMP", "run the model outside of it"},
               [&] { run_whole(*find_op("matmul"), attrs, operands, 2); });
}

struct Moments {
  double mean, deviation, largest;
};

// However many are drawn at once, and from wherever: the vectors do not show.
TEST(Random, WordsAreThoseOfTheirIndex) {
  using ops::kRandomBlock;
  const ops::RandomKey key{.seed = 0x123456789abcdef, .stream = 7, .step = 9};
  std::vector<uint32_t> words(kRandomBlock);
  for (uint64_t first : {uint64_t{0}, uint64_t{1}, uint64_t{1023}, (uint64_t{1} << 34) - 7, (uint64_t{1} << 40) + 2})
    for (int count : {1, 4, 31, 97, kRandomBlock - 1, kRandomBlock}) {
      ops::random_words(key, first, count, words.data());
      for (int i = 0; i < count; ++i) {
        const uint64_t index = first + static_cast<uint64_t>(i);
        ASSERT_EQ(words[static_cast<size_t>(i)], random_block(key.seed, key.stream, key.step, index / 4)[index % 4]) << index;
      }
    }
}

TEST(Random, HasTheMomentsAndBoundsItStates) {
  const Attrs common{{"shape", std::vector<int64_t>{200000}}, {"seed", int64_t{42}}, {"stream", int64_t{0}}};
  auto moments = [](const Tensor& x) {
    double sum = 0, squares = 0, largest = 0;
    for (int64_t i = 0; i < x.size(); ++i) sum += x.at(i), squares += x.at(i) * x.at(i), largest = std::max(largest, std::fabs(x.at(i)));
    const double mean = sum / static_cast<double>(x.size());
    return Moments{mean, std::sqrt(squares / static_cast<double>(x.size()) - mean * mean), largest};
  };
  Attrs normal = common, truncated = common, uniform = common;
  normal.set("mean", 0.0), normal.set("stddev", 1.0), normal.set("truncated", int64_t{0});
  truncated.set("mean", 0.0), truncated.set("stddev", 1.0), truncated.set("truncated", int64_t{1});
  uniform.set("low", -1.0), uniform.set("high", 1.0);
  struct Wanted {
    Moments got;
    double deviation, least, most;  // of the largest
  };
  for (const Wanted& wanted : {Wanted{moments(run("random_normal", {}, normal)), 1, 3.5, 6},
                               Wanted{moments(run("random_normal", {}, truncated)), 0.8796, 1.99, 2},  // Keras divides by this deviation
                               Wanted{moments(run("random_uniform", {}, uniform)), 1 / std::sqrt(3.0), 0.999, 1}}) {
    EXPECT_NEAR(wanted.got.mean, 0, 0.01);
    EXPECT_NEAR(wanted.got.deviation, wanted.deviation, 0.01);
    EXPECT_GE(wanted.got.largest, wanted.least);
    EXPECT_LE(wanted.got.largest, wanted.most);
  }
}

TEST(Random, DropoutChangesWithStreamSeedAndStepOnly) {
  const Tensor x = tensor_of({1000}, std::vector<double>(1000, 1.0));
  auto mask = [&](int64_t seed, int64_t stream, double step) {
    return run("dropout", {x, integers_of({}, {step})}, {{"rate", 0.25}, {"seed", seed}, {"stream", stream}});
  };
  const Tensor first = mask(1, 2, 3);
  EXPECT_EQ(mask(1, 2, 3), first);
  EXPECT_NE(mask(2, 2, 3), first);
  EXPECT_NE(mask(1, 3, 3), first);
  EXPECT_NE(mask(1, 2, 4), first);
  double sum = 0;
  for (int64_t i = 0; i < first.size(); ++i) sum += first.at(i);
  EXPECT_NEAR(sum / 1000, 1, 0.1);
}

// --- collectives, rules and refusals
// ------------------------------------------------------------------------------------------------------

TEST(Collectives, KeepTheLogicalTensor) {
  for (const char* name : {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "shard"}) {
    const OpDef* def = find_op(name);
    ASSERT_NE(def, nullptr) << name;
    EXPECT_TRUE(def->collective && def->cpu == nullptr && !def->elementwise());
    const TensorType type{DType::kI32, {4, 6}};
    EXPECT_EQ(result_types(*def, {{}, {type}, name}), std::vector<TensorType>{type});
    FactorRule rule = rule_of(*def, {{}, {type}, name});
    for (int f : {0, 1}) EXPECT_TRUE(can_split(rule, f, 4));
  }
}

TEST(Rules, ProductsCountTwoOperationsAnElementOfTheirSum) {
  const Attrs attrs{{"factors", std::string("bmk,bkn->bmn")}};
  const OpDef& matmul = *find_op("matmul");
  EXPECT_EQ(matmul.flops({attrs, {{DType::kF32, {3, 4, 5}}, {DType::kF32, {3, 5, 2}}}, "matmul"}), 2 * 3 * 4 * 5 * 2);
}

TEST(Rules, ReshapeFindsTheCommonFactors) {
  auto splits = [](Dims from, std::vector<int64_t> to) {
    Attrs attrs{{"shape", std::move(to)}};
    FactorRule rule = rule_of(*find_op("reshape"), {attrs, {{DType::kF32, from}}, "reshape"});
    std::string text;
    for (size_t f = 0; f < rule.factors.size(); ++f)
      text += fmt::format("{}{} ", rule.factors[f].size, can_split(rule, static_cast<int>(f), rule.factors[f].size) ? "" : "-");
    return text;
  };
  EXPECT_EQ(splits({6, 4}, {24}), "6 4- ");
  EXPECT_EQ(splits({24}, {6, 4}), "6 4- ");
  EXPECT_EQ(splits({2, 3, 4}, {6, 4}), "2 3- 4 ");
  EXPECT_EQ(splits({5, 7, 1}, {5, 1, 7}), "5 7 ");
  EXPECT_EQ(splits({6, 4}, {8, 3}), "2 3- 4- 4- 3- ");  // 2 of 6 = 2 x 3 and 8 = 2 x 4, then 3 x 4 against 4 x 3
}

ValueId append(const std::string& name, const std::vector<TensorType>& types, const Attrs& attrs) {
  Graph graph;
  Builder builder(graph);
  builder.scope = "net/layer";
  std::vector<ValueId> ids;
  for (const TensorType& type : types) ids.push_back(graph.add_input(Role::kData, "", type));
  return builder.op(name, ids, attrs);
}
TensorType f32(Dims shape) { return {DType::kF32, shape}; }

struct Wrong {
  std::string name;
  std::vector<TensorType> operands;
  Attrs attrs;
  std::vector<std::string> words;
};

TEST(Refusals, NameOpPlaceAndRemedy) {
  using Ints = std::vector<int64_t>;
  auto product = [](const char* factors) { return Attrs{{"factors", std::string(factors)}}; };
  const std::vector<Wrong> list = {
      {"matmul", {f32({2, 3}), f32({3, 4})}, {}, {"op 'matmul' needs the attribute 'factors'", "net/layer"}},
      {"matmul", {f32({2, 3}), f32({3, 4})}, {{"factors", int64_t{3}}}, {"attribute 'factors' of op 'matmul' has to be a text"}},
      {"matmul", {f32({2, 3}), f32({4, 4})}, product("mk,kn->mn"), {"operand 1 has a dim of size 4 where 3 is needed"}},
      {"matmul", {f32({2, 3}), f32({3})}, product("mk,kn->mn"), {"operand 1 has shape (3,) but rank 2 is needed"}},
      {"matmul", {f32({2, 3}), f32({3, 4})}, product("mk kn"), {"do not name two operands and a result"}},
      {"matmul", {f32({2, 3}), f32({3, 4})}, product("mk,kn->m"), {"letter 'n' stands in one tensor only"}},
      {"matmul", {f32({2, 2}), f32({2, 4})}, product("mm,mn->mn"), {"letter 'm' stands twice in one tensor"}},
      {"matmul", {f32({2, 3}), f32({3, 4})}, product("m1,1n->mn"), {"'1' in the factors \"m1,1n->mn\" is no letter"}},
      {"matmul", {f32({2, 3, 4}), f32({3, 5})}, product("akb,kn->abn"), {"letters 'ab' have to stand together", "\"mk,nk->mn\""}},
      {"exp", {f32({2})}, {{"scale", 1.0}}, {"op 'exp' has no attribute 'scale'", "it takes none"}},
      {"constant", {}, {{"valeu", 1.0}}, {"op 'constant' needs the attribute 'value'"}},
      {"softmax", {f32({2})}, {{"dim", int64_t{0}}, {"dims", int64_t{0}}}, {"op 'softmax' has no attribute 'dims'", "did you mean 'dim'?"}},
      {"softmax", {f32({2})}, {{"dim", int64_t{1}}}, {"there is no dim 1 in the shape (2,)"}},
      {"reduce_sum", {f32({2})}, {{"dims", Ints{0, 0}}, {"keep", int64_t{0}}}, {"dim 0 is named twice"}},
      {"reduce_sum", {f32({2})}, {{"dims", Ints{-1}}, {"keep", int64_t{0}}}, {"there is no dim -1"}},
      {"reduce_sum", {f32({2})}, {{"dims", Ints{0}}, {"keep", int64_t{2}}}, {"'keep' is 2"}},
      {"reshape", {f32({2, 3})}, {{"shape", Ints{4}}}, {"cannot reshape (2, 3) into (4,)", "multiply to 6"}},
      {"reshape", {f32({2, 3})}, {{"shape", Ints{-2, -3}}}, {"-2"}},
      {"reshape", {f32({1})}, {{"shape", Ints(20, 1)}}, {"rank 20 is too long"}},
      {"transpose", {f32({2, 3})}, {{"permutation", Ints{0, 0}}}, {"(0, 0) is no permutation of 2 dims"}},
      {"transpose", {f32({})}, {{"permutation", Ints{0}}}, {"(0) is no permutation of 0 dims"}},
      {"broadcast", {f32({2})}, {{"shape", Ints{3}}, {"dims", Ints{0}}}, {"a dim of size 2 does not broadcast to size 3"}},
      {"broadcast", {f32({3, 2})}, {{"shape", Ints{2, 3}}, {"dims", Ints{1, 0}}}, {"rising order"}},
      {"slice", {f32({4})}, {{"begin", Ints{2}}, {"size", Ints{3}}}, {"the slice leaves dim 0, which has 4 elements"}},
      {"slice", {f32({4})}, {{"begin", Ints{0}}, {"size", Ints{3}}, {"step", Ints{INT64_MAX}}}, {"the slice leaves dim 0"}},
      {"pad", {f32({4})}, {{"before", Ints{-1}}, {"after", Ints{0}}}, {"'before' has -1"}},
      {"pad", {f32({4})}, {{"before", Ints{INT64_MAX}}, {"after", Ints{INT64_MAX}}}, {"out of range"}},
      {"concat", {f32({4, 2}), f32({4, 3})}, {{"dim", int64_t{0}}}, {"shapes (4, 2) and (4, 3) do not agree outside dim 0"}},
      {"concat", {f32({4}), {DType::kI32, {4}}}, {{"dim", int64_t{0}}}, {"takes f32 as operand 1, not i32"}},
      {"add", {f32({4}), f32({3})}, {}, {"shapes (4,) and (3,) do not broadcast together"}},
      {"add", {f32({4})}, {}, {"op 'add' takes 2 operands, not 1"}},
      {"dropout", {f32({4}), {DType::kI32, {}}}, {{"rate", 1.5}, {"seed", int64_t{0}}, {"stream", int64_t{0}}}, {"'rate' is 1.5"}},
      {"one_hot", {{DType::kI32, {4}}}, {{"depth", int64_t{-1}}}, {"cannot add a dim of -1"}},
      {"take_label", {f32({}), {DType::kI32, {}}}, {}, {"a scalar has no dim of classes"}},
      {"momentum_update", {f32({}), f32({}), f32({}), f32({})}, {{"momentum", 0.9}, {"nesterov", int64_t{7}}}, {"'nesterov' is 7"}},
      {"orthogonal", {}, {{"shape", Ints{4}}, {"gain", 1.0}, {"seed", int64_t{0}}, {"stream", int64_t{0}}}, {"at least 2 dims"}},
      {"identity", {}, {{"shape", Ints{4}}, {"gain", 1.0}}, {"2 dims, not 1"}},
      {"fused", {f32({4})}, {{"body", int64_t{4}}}, {"has to be a graph"}},
  };
  for (const Wrong& wrong : list) {
    SCOPED_TRACE(wrong.name + ": " + wrong.words[0]);
    expect_error(ErrorKind::kUsage, wrong.words, [&] { append(wrong.name, wrong.operands, wrong.attrs); });
  }
}

TEST(Refusals, BodiesAreElementwise) {
  auto body = [](const std::string& op, const Attrs& attrs, const std::vector<TensorType>& types) {
    auto graph = std::make_shared<Graph>();
    std::vector<ValueId> ids;
    for (const TensorType& type : types) ids.push_back(graph->add_input(Role::kData, "", type));
    graph->add_output(Role::kResult, "", Builder(*graph).op(op, ids, attrs));
    return std::shared_ptr<const Graph>(graph);
  };
  const Attrs softmax{{"body", body("softmax", {{"dim", int64_t{0}}}, {f32({4})})}}, add{{"body", body("add", {}, {f32({4}), f32({4})})}};
  const Attrs empty{{"body", std::shared_ptr<const Graph>(std::make_shared<Graph>())}};
  expect_error(ErrorKind::kUsage, {"op 'softmax' in the body is not elementwise"}, [&] { append("fused", {f32({4})}, softmax); });
  expect_error(ErrorKind::kUsage, {"the body takes 2 inputs, the op has 1"}, [&] { append("fused", {f32({4})}, add); });
  expect_error(ErrorKind::kUsage, {"the body takes 0 inputs, the op has 1"}, [&] { append("fused", {f32({4})}, empty); });
  Attrs product = add;
  product.set("factors", std::string("mk,kn->mn"));
  expect_error(ErrorKind::kUsage, {"does not broadcast to the product's shape (2, 4)"}, [&] {
    append("matmul_epilogue", {f32({2, 3}), f32({3, 4}), f32({3})}, product);
  });
}

}  // namespace
}  // namespace espalier::test
