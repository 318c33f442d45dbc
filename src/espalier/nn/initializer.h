#pragma once
// Keras' initialisers: what a variable holds before the first step. The values are a function of the seed, the variable's path and the
// global index of an element (Philox), so they depend neither on the mesh nor on which other layers a model has.
// Source of fans and of the correction of truncated normals: keras/src/initializers/random_initializers.py (Keras 3.15).
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "espalier/ir/graph.h"

namespace espalier::nn {

enum class FanMode { kFanIn, kFanOut, kFanAvg };
enum class ScalingDistribution { kUniform, kTruncatedNormal, kUntruncatedNormal };

struct Initializer {
  enum class Kind { kConstant, kUniform, kNormal, kTruncatedNormal, kVarianceScaling, kOrthogonal, kIdentity };

  Initializer() = default;               // Zeros
  Initializer(const char* name);         // NOLINT: "glorot_uniform", "GlorotUniform", ... with Keras' defaults, as Keras takes them
  Initializer(const std::string& name);  // NOLINT

  Kind kind = Kind::kConstant;
  double value = 0;                      // Constant
  double minval = -0.05, maxval = 0.05;  // RandomUniform
  double mean = 0, stddev = 0.05;        // RandomNormal, TruncatedNormal
  double scale = 1;                      // VarianceScaling
  FanMode mode = FanMode::kFanIn;
  ScalingDistribution distribution = ScalingDistribution::kTruncatedNormal;
  double gain = 1;                   // Orthogonal, Identity
  std::optional<int64_t> seed = {};  // replaces the run's seed
};

struct Zeros : Initializer {};
struct Ones : Initializer {
  Ones();
};
struct Constant : Initializer {
  explicit Constant(double value = 0);
};
struct RandomUniform : Initializer {
  explicit RandomUniform(double minval = -0.05, double maxval = 0.05);
};
struct RandomNormal : Initializer {
  explicit RandomNormal(double mean = 0, double stddev = 0.05);
};
struct TruncatedNormal : Initializer {
  explicit TruncatedNormal(double mean = 0, double stddev = 0.05);
};
// `scale` not above 0 is an error.
struct VarianceScaling : Initializer {
  explicit VarianceScaling(double scale = 1, FanMode mode = FanMode::kFanIn,
                           ScalingDistribution distribution = ScalingDistribution::kTruncatedNormal);
};
struct GlorotUniform : Initializer {
  GlorotUniform();
};
struct GlorotNormal : Initializer {
  GlorotNormal();
};
struct HeUniform : Initializer {
  HeUniform();
};
struct HeNormal : Initializer {
  HeNormal();
};
struct LecunUniform : Initializer {
  LecunUniform();
};
struct LecunNormal : Initializer {
  LecunNormal();
};
struct Orthogonal : Initializer {
  explicit Orthogonal(double gain = 1);
};
struct Identity : Initializer {
  explicit Identity(double gain = 1);
};

// The random stream of a variable or layer: FNV-1a of its path.
uint32_t random_stream(std::string_view path);

// Appends the ops that compute the first value of the variable `path`. Errors: Orthogonal on rank below 2, Identity on a rank that is
// not 2.
ValueId initial_value(Builder& builder, const Initializer& initializer, const TensorType& type, const std::string& path, uint64_t seed);

}  // namespace espalier::nn
