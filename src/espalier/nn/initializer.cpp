#include "espalier/nn/initializer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "espalier/base/nearest.h"
#include "espalier/nn/formula.h"

namespace espalier::nn {

Ones::Ones() { value = 1; }
Constant::Constant(double v) { value = v; }

RandomUniform::RandomUniform(double low, double high) {
  kind = Kind::kUniform;
  minval = low;
  maxval = high;
}

RandomNormal::RandomNormal(double m, double s) {
  kind = Kind::kNormal;
  mean = m;
  stddev = s;
}

TruncatedNormal::TruncatedNormal(double m, double s) {
  kind = Kind::kTruncatedNormal;
  mean = m;
  stddev = s;
}

VarianceScaling::VarianceScaling(double s, FanMode m, ScalingDistribution d) {
  if (!(s > 0)) usage_error(fmt::format("scale {} is not positive", s), "VarianceScaling", "give a scale above 0");
  kind = Kind::kVarianceScaling;
  scale = s;
  mode = m;
  distribution = d;
}

GlorotUniform::GlorotUniform() : Initializer(VarianceScaling(1, FanMode::kFanAvg, ScalingDistribution::kUniform)) {}
GlorotNormal::GlorotNormal() : Initializer(VarianceScaling(1, FanMode::kFanAvg)) {}
HeUniform::HeUniform() : Initializer(VarianceScaling(2, FanMode::kFanIn, ScalingDistribution::kUniform)) {}
HeNormal::HeNormal() : Initializer(VarianceScaling(2)) {}
LecunUniform::LecunUniform() : Initializer(VarianceScaling(1, FanMode::kFanIn, ScalingDistribution::kUniform)) {}
LecunNormal::LecunNormal() : Initializer(VarianceScaling()) {}

Orthogonal::Orthogonal(double g) {
  kind = Kind::kOrthogonal;
  gain = g;
}

Identity::Identity(double g) {
  kind = Kind::kIdentity;
  gain = g;
}

namespace {

// Keras' names and aliases, with its defaults.
const std::map<std::string, Initializer>& known_initializers() {
  static const std::map<std::string, Initializer> table = {
      {"Zeros", Zeros()},
      {"zeros", Zeros()},
      {"zero", Zeros()},
      {"Ones", Ones()},
      {"ones", Ones()},
      {"one", Ones()},
      {"Constant", Constant()},
      {"constant", Constant()},
      {"RandomUniform", RandomUniform()},
      {"random_uniform", RandomUniform()},
      {"uniform", RandomUniform()},
      {"RandomNormal", RandomNormal()},
      {"random_normal", RandomNormal()},
      {"normal", RandomNormal()},
      {"TruncatedNormal", TruncatedNormal()},
      {"truncated_normal", TruncatedNormal()},
      {"VarianceScaling", VarianceScaling()},
      {"variance_scaling", VarianceScaling()},
      {"GlorotUniform", GlorotUniform()},
      {"glorot_uniform", GlorotUniform()},
      {"GlorotNormal", GlorotNormal()},
      {"glorot_normal", GlorotNormal()},
      {"HeUniform", HeUniform()},
      {"he_uniform", HeUniform()},
      {"HeNormal", HeNormal()},
      {"he_normal", HeNormal()},
      {"LecunUniform", LecunUniform()},
      {"lecun_uniform", LecunUniform()},
      {"LecunNormal", LecunNormal()},
      {"lecun_normal", LecunNormal()},
      {"Orthogonal", Orthogonal()},
      {"orthogonal", Orthogonal()},
      {"OrthogonalInitializer", Orthogonal()},
      {"Identity", Identity()},
      {"identity", Identity()},
      {"IdentityInitializer", Identity()},
  };
  return table;
}

Initializer initializer_by_name(const std::string& name) {
  auto found = known_initializers().find(name);
  if (found != known_initializers().end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, initializer] : known_initializers()) names.push_back(known);
  usage_error(fmt::format("there is no initializer '{}'", name), "", suggest(name, names));
}

struct Fans {
  double in, out;
};

Fans compute_fans(const Dims& shape) {
  if (shape.empty()) return {1, 1};
  if (shape.rank() == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double receptive_field = 1;  // of a convolution kernel
  for (int dim = 0; dim < shape.rank() - 2; ++dim) receptive_field *= static_cast<double>(shape[dim]);
  return {receptive_field * static_cast<double>(shape[shape.rank() - 2]), receptive_field * static_cast<double>(shape.back())};
}

// Standard deviation of a standard normal that is redrawn beyond two standard deviations.
constexpr double kTruncatedStddev = 0.87962566103423978;

// Variance scaling is a uniform or normal distribution whose width follows from the shape.
Initializer without_scaling(const Initializer& initializer, const Dims& shape) {
  Fans fans = compute_fans(shape);
  double fan = initializer.mode == FanMode::kFanIn ? fans.in : initializer.mode == FanMode::kFanOut ? fans.out : (fans.in + fans.out) / 2;
  double scale = initializer.scale / std::max(1.0, fan);
  Initializer result;
  switch (initializer.distribution) {
    case ScalingDistribution::kUniform:
      result = RandomUniform(-std::sqrt(3 * scale), std::sqrt(3 * scale));
      break;
    case ScalingDistribution::kTruncatedNormal:
      result = TruncatedNormal(0, std::sqrt(scale) / kTruncatedStddev);
      break;
    case ScalingDistribution::kUntruncatedNormal:
      result = RandomNormal(0, std::sqrt(scale));
      break;
  }
  result.seed = initializer.seed;
  return result;
}

}  // namespace

Initializer::Initializer(const char* name) : Initializer(std::string(name)) {}
Initializer::Initializer(const std::string& name) { *this = initializer_by_name(name); }

uint32_t random_stream(std::string_view path) {
  uint32_t hash = 2166136261u;
  for (char c : path) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

ValueId initial_value(Builder& builder, const Initializer& given, const TensorType& type, const std::string& path, uint64_t seed) {
  Initializer initializer = given.kind == Initializer::Kind::kVarianceScaling ? without_scaling(given, type.shape) : given;
  Attrs attrs = {{"shape", type.shape.vector()}};
  auto random = [&](const std::string& op) {
    attrs.set("seed", static_cast<int64_t>(initializer.seed ? static_cast<uint64_t>(*initializer.seed) : seed));
    attrs.set("stream", int64_t{random_stream(path)});
    return builder.op(op, {}, attrs);
  };
  switch (initializer.kind) {
    case Initializer::Kind::kConstant: {
      ValueId value = broadcast_scalar(initializer.value, type.shape).emit(builder);
      return type.dtype == DType::kI32 ? builder.op("to_i32", {value}) : value;
    }
    case Initializer::Kind::kUniform:
      attrs.set("low", initializer.minval);
      attrs.set("high", initializer.maxval);
      return random("random_uniform");
    case Initializer::Kind::kNormal:
    case Initializer::Kind::kTruncatedNormal:
      attrs.set("mean", initializer.mean);
      attrs.set("stddev", initializer.stddev);
      attrs.set("truncated", int64_t{initializer.kind == Initializer::Kind::kTruncatedNormal});
      return random("random_normal");
    case Initializer::Kind::kOrthogonal:
      if (type.shape.rank() < 2)
        usage_error(fmt::format("initializer 'Orthogonal' needs a variable of rank 2 or more, not {}", to_string(type.shape)), path,
                    "choose another initializer");
      attrs.set("gain", initializer.gain);
      return random("orthogonal");
    case Initializer::Kind::kIdentity:
      if (type.shape.rank() != 2)
        usage_error(fmt::format("initializer 'Identity' needs a matrix, not {}", to_string(type.shape)), path,
                    "choose another initializer");
      attrs.set("gain", initializer.gain);
      return builder.op("identity", {}, attrs);
    case Initializer::Kind::kVarianceScaling:
      break;
  }
  ESPALIER_ASSERT(false);
  return kNoValue;
}

}  // namespace espalier::nn
