// Uses: nn
// What a user who builds a wrong model meets: every error of layers, models and compilations with its whole message.
#include <gtest/gtest.h>

#include <functional>

#include "espalier/nn/layers.h"
#include "espalier/nn/model_def.h"
#include "espalier/nn/trace.h"
#include "expect_error.h"

namespace espalier::nn {
namespace {

Model stack() { return Sequential({Input({4}), Dense(3), Dense(2)}); }

Model inner() {
  Input x({4});
  return Model(x, Dense(4)(x), {.name = "inner"});
}

Model two_outputs() {
  Input x({4}, {.name = "x"});
  return Model(x, {Dense(1, {.name = "left"})(x), Dense(2, {.name = "right"})(x)}, {.name = "two"});
}

void train(const Model& model, const Compilation& compilation) { trace_step(model, compilation, 2, StepKind::kTrain); }

TEST(Errors, OfLayers) {
  Input x({4}, {.name = "x"}), y({3}, {.name = "y"});
  const std::vector<std::pair<std::function<void()>, std::string>> cases = {
      {[] { Dense(0); }, "layer Dense has units=0; give 1 or more"},
      {[] { Dense(-3, {.name = "d"}); }, "layer 'd' (Dense) has units=-3; give 1 or more"},
      {[] { Dense(2, {.name = "d"})(Input(Dims{})); },
       "layer 'd' (Dense) needs samples of rank 1 or more, and its input has the shape (None,); reshape the input to (1,)"},
      {[] { Dense(2, {.activation = "rellu"}); }, "there is no activation 'rellu'; did you mean 'relu'?"},
      {[] { Dense(2, {.activation = "glu"}); }, "activation 'glu' of Keras is not supported; choose another activation"},
      {[] { Dense(2, {.kernel_initializer = "glorot_unifrom"}); },
       "there is no initializer 'glorot_unifrom'; did you mean 'glorot_uniform'?"},
      {[] { Dense(2, {.kernel_regularizer = "l3"}); }, "there is no regularizer 'l3'; did you mean 'l1'?"},
      {[] { L2(-1); }, "a regularizer's factor is '-1'; give a number that is 0 or more"},
      {[] { Dropout(1.5, {.name = "drop"}); }, "layer 'drop' (Dropout) has rate=1.5; give a number from 0 to 1"},
      {[] {
         Reshape({-1, -1});
       },
       "layer Reshape has the target shape (-1, -1); only one dim may be -1"},
      {[] {
         Reshape({0, 2});
       },
       "layer Reshape has the target shape (0, 2); a dim is 1 or more, or -1 once"},
      {[&] {
         Reshape({3, -1}, {.name = "r"})(x);
       },
       "layer 'r' (Reshape) cannot make (3, -1) of its input (None, 4); a sample has 4 elements"},
      {[&] {
         Add({.name = "sum"})({x, y});
       },
       "layer 'sum' (Add) cannot combine shapes (None, 4) and (None, 3); make them equal, or 1 where they differ"},
      {[&] {
         Subtract()({x, x, x});
       },
       "layer Subtract takes 2 inputs, not 3"},
      {[&] {
         Dense(2)({x, y});
       },
       "layer Dense takes one input, not 2"},
      {[&] {
         Concatenate({.axis = 2})({x, y});
       },
       "axis 2 of layer Concatenate does not exist; its input has 2 dims, the batch counted"},
      {[&] {
         Concatenate({.axis = 0})({x, y});
       },
       "axis 0 of layer Concatenate is the batch; choose a later axis"},
      {[] {
         Concatenate({.axis = 1, .name = "join"})({Input({2, 4}), Input({2, 3})});
       },
       "layer 'join' (Concatenate) cannot join shapes (None, 2, 4) and (None, 2, 3) along axis 1; they may differ in that axis only"},
      {[&] { BatchNormalization({.axis = 5})(x); },
       "axis 5 of layer BatchNormalization does not exist; its input has 2 dims, the batch counted"},
      {[] { BatchNormalization({.momentum = 2}); }, "layer BatchNormalization has momentum=2; give a number from 0 to 1"},
      {[] { LayerNormalization({.epsilon = 0}); }, "layer LayerNormalization has epsilon=0; give a number above 0"},
      {[&] {
         LayerNormalization({.axis = {1, -1}})(x);
       },
       "layer LayerNormalization names an axis twice"},
      {[] { Normalization({.mean = {{1.0}}}); }, "layer Normalization has a mean or a variance without the other; give both or neither"},
      {[&] {
         Normalization({.mean = {{1, 2}}, .variance = {{1, 1}}})(x);
       },
       "layer Normalization has 2 means; its axes have 4 indices: give one mean for each, or one"},
      {[] { LeakyReLU(-1); }, "layer LeakyReLU has negative_slope=-1; give 0 or more"},
      {[] {
         Input({3, 0});
       },
       "layer InputLayer has the shape (3, 0); every dim has to be 1 or more"},
      {[] {
         Input({1, 1, 1, 1, 1, 1, 1, 1}, {.name = "x"});
       },
       "layer 'x' (InputLayer) has 8 dims; a sample has at most 7"},
      {[] { Dense(2)(Tensor()); }, "a tensor that comes from no layer: Tensor(); begin with nn::Input"},
  };
  for (const auto& [action, text] : cases) EXPECT_EQ(error_text(action), text);
}

TEST(Errors, OfASharedLayer) {
  Dense shared(2, {.name = "shared"});
  shared(Input({4}));
  EXPECT_EQ(error_text([&] { shared(Input({5})); }),
            "layer 'shared' (Dense) has its weight 'kernel' of shape (4, 2) from a call on (None, 4), and (None, 5) needs (5, 2); "
            "call a shared layer on inputs of one width, or make another layer");
}

TEST(Errors, OfModels) {
  Input x({4}, {.name = "x"}), y({4}, {.name = "y"});
  Tensor hidden = Dense(4, {.name = "hidden"})(x);
  const std::vector<std::pair<std::function<void()>, std::string>> cases = {
      {[&] {
         Model(x, Add()({x, y}), {.name = "m"});
       },
       "layer 'm' (Functional) needs the input of layer 'y' (InputLayer), which is not among its inputs; add it to the model's inputs"},
      {[&] { Model(hidden, Dense(1)(hidden), {.name = "m"}); },
       "input 0 of layer 'm' (Functional) is made by layer 'hidden' (Dense); a model's inputs are nn::Input tensors"},
      {[&] {
         Model({x, x}, hidden, {.name = "m"});
       },
       "layer 'm' (Functional) has layer 'x' (InputLayer) as an input twice"},
      {[&] { Model(x, Dense(2, {.name = "hidden"})(hidden), {.name = "m"}); },
       "two layers of model 'm' are named 'hidden'; give one of them another name"},
      {[] {
         Sequential({Input({4}), Dense(2, {.name = "d"}), Dense(2, {.name = "d"})}, {.name = "m"});
       },
       "layer 'm' (Sequential) has two layers named 'd'; give one of them another name"},
      {[] {
         Sequential({Dense(2), Input({4})});
       },
       "layer Sequential has an Input as its layer 1; an Input stands first"},
      {[] { Sequential(std::vector<Layer>{}, {.name = "m"}); }, "layer 'm' (Sequential) has no layers; give it at least one"},
      {[] { Sequential({Dense(2)}, {.name = "m"}).variables(); },
       "layer 'm' (Sequential) does not know the shape of its input; put an Input first"},
      {[] { Sequential({Dense(2)}).build({3}); }, "no error"},
      {[] { stack().build({3}); }, "layer Sequential has the input shape (None, 4), not (None, 3)"},
      {[&] { inner()(Input({5})); }, "input 0 of layer 'inner' (Functional) has the shape (None, 5), not (None, 4)"},
      {[] { stack().layer("dens_1"); }, "there is no layer 'dens_1': model 'sequential'; did you mean 'dense_1'?"},
      {[] { two_outputs()(Input({4})); }, "layer 'two' (Functional) has 2 outputs, not one; take them with call()"},
  };
  for (const auto& [action, text] : cases) EXPECT_EQ(error_text(action), text);
}

TEST(Errors, OfCompilations) {
  Model single = Sequential({Input({4}), Dense(2, {.name = "d"})}, {.name = "m"});
  Input scalar(Dims{}, {.name = "s"});
  Model of_scalars(scalar, Rescaling(2, {.name = "twice"})(scalar), {.name = "m"});
  const std::vector<std::pair<std::function<void()>, std::string>> cases = {
      {[] { Loss("mean_square_error"); }, "there is no loss 'mean_square_error'; did you mean 'mean_squared_error'?"},
      {[] { Metric("acuracy"); }, "there is no metric 'acuracy'; did you mean 'accuracy'?"},
      {[] { Optimizer("adan"); }, "there is no optimizer 'adan'; did you mean 'adam'?"},
      {[] { SGD(0.1, {.momentum = 1.5}); }, "momentum is 1.5: optimizer 'SGD'; give a number from 0 to 1"},
      {[] { SGD(-1); }, "learning_rate is -1: optimizer 'SGD'; give 0 or more"},
      {[] { Adam(0.1, {.beta_1 = 1}); }, "beta_1 is 1: optimizer 'Adam'; give a number from 0 to below 1"},
      {[] { AdamW(0.1, {.clipnorm = 1, .clipvalue = 1}); },
       "gradients are clipped in two ways: optimizer 'AdamW'; give one of clipnorm, global_clipnorm, clipvalue"},
      {[] { CategoricalCrossentropy({.label_smoothing = 2}); },
       "label_smoothing is 2: loss 'categorical_crossentropy'; give a number from 0 to 1"},
      {[&] { train(single, {}); }, "model 'm' has no loss; compile it with one"},
      {[&] { trace_step(single, {.loss = "mse"}, 0, StepKind::kTrain); }, "a batch of 0 samples; a batch has 1 to 1,099,511,627,776"},
      {[&] { train(single, {.loss = "mse", .metrics = {"sparse_categorical_accuracy"}}); },
       "metric 'sparse_categorical_accuracy' compares with class numbers: output 'd'; use 'categorical_accuracy' for this loss"},
      {[&] { train(single, {.loss = "sparse_categorical_crossentropy", .metrics = {"mse"}}); },
       "metric 'mse' compares with numbers of the output's shape: output 'd'; use a metric of classes for this loss"},
      {[&] { train(of_scalars, {.loss = "mse"}); },
       "loss 'mse' needs samples of rank 1 or more: output 'twice'; end the model in a layer that gives (1,)"},
      {[] {
         train(two_outputs(), {.loss = std::map<std::string, Loss>{{"lift", "mse"}}});
       },
       "there is no output 'lift': loss; did you mean 'left'?"},
      {[] { train(two_outputs(), {.loss = "mse", .metrics = {"mae"}}); },
       "metrics has 1 entries for 2 outputs; give one for each of 'left', 'right', or name the outputs"},
      {[] {
         train(two_outputs(), {.loss = "mse", .loss_weights = std::vector<double>{1, 2, 3}});
       },
       "loss_weights has 3 entries for 2 outputs; give one for each of 'left', 'right', or name the outputs"},
      {[] {
         train(Sequential({Input({4}), Dense(2, {.kernel_initializer = "orthogonal"})}), {.loss = "mse"});
       },
       "no error"},
      {[] {
         Sequential model({Input({2, 4}), Dense(2, {.bias_initializer = "orthogonal", .name = "d"})}, {.name = "m"});
         trace_initialization(model, {}, 0);
       },
       "initializer 'Orthogonal' needs a variable of rank 2 or more, not (2,): m/d/bias; choose another initializer"},
  };
  for (const auto& [action, text] : cases) EXPECT_EQ(error_text(action), text);
}

}  // namespace
}  // namespace espalier::nn
