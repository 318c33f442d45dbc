// Uses: interop
// Reading Keras files: what Keras itself wrote (tests/keras_files, with what Keras says about each) and every form that files in the wild
// have. Wrong ones: keras_errors_test.
#include <fmt/format.h>

#include "espalier/interop/keras_layers.h"
#include "keras_json.h"

namespace espalier {
namespace {

Json variables_of(const nn::Model& model) {
  Json list = Json::array();
  for (const nn::Variable& variable : model.variables()) {
    list.push_back({variable.path, variable.type.shape.vector(), variable.trainable});
  }
  return list;
}

Json ends_of(const std::vector<std::string>& names, const std::vector<Dims>& shapes) {
  Json list = Json::array();
  for (size_t i = 0; i < names.size(); ++i) list.push_back({names[i], shapes[i].vector()});
  return list;
}

// --- what Keras wrote --------------------------------------------------------------------------------------------------------------------

class KerasWrote : public testing::TestWithParam<const char*> {};

TEST_P(KerasWrote, VariablesInputsAndOutputsAreKeras) {
  const std::string name = GetParam();
  const Json expected = Json::parse(content("keras_files/expected.json")).at(name);
  const nn::Model model = read_file("keras_files/" + name + ".json").model;
  Json variables = expected["variables"];
  if (name == "nested") {  // Keras gives two layers one path; ours are told apart
    variables[8][0] = "chain/chain_d/kernel";
    variables[9][0] = "chain/chain_d/bias";
  }
  EXPECT_EQ(variables_of(model), variables);
  EXPECT_EQ(ends_of(model.input_names(), model.input_shapes()), expected["inputs"]);
  Json outputs = expected["outputs"];
  if (name == "nested") outputs[1][0] = "fork_1";  // Keras calls both outputs 'fork'; ours are told apart
  EXPECT_EQ(ends_of(model.output_names(), model.output_shapes()), outputs);
}

INSTANTIATE_TEST_SUITE_P(Files, KerasWrote,
                         testing::Values("unary", "merging", "nested", "out_of_order", "dicts", "initialised", "activations", "operations",
                                         "frozen", "half", "built"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Keras, ModelsOfTheProject) {
  for (const auto& [name, parameters] : std::map<std::string, int64_t>{{"fashion_mnist", 669706},
                                                                       {"two_dense", 2762},
                                                                       {"big_dense", 1536072000},
                                                                       {"bench_dense", 25175040},
                                                                       {"uneven", 1111},
                                                                       {"branches", 2106},
                                                                       {"regression", 223}}) {
    const KerasFile file = read_file("models/" + name + ".json");
    EXPECT_EQ(file.model.parameter_count(), parameters) << name;
    EXPECT_EQ(file.compilation.has_value(), name != "regression") << name;
    EXPECT_EQ(file.warnings, std::vector<std::string>{}) << name;
  }
  const KerasFile uneven = read_file("models/uneven.json");
  EXPECT_EQ(uneven.model.variables()[2].path, "odd/b/kernel");
  EXPECT_EQ(uneven.model.input_names(), std::vector<std::string>{"pixels"});
  EXPECT_EQ(uneven.compilation->optimizer.momentum, 0.9);
  EXPECT_TRUE(uneven.compilation->optimizer.nesterov);
  EXPECT_EQ(read_file("models/branches.json").model.variables()[0].path, "left/kernel");
  EXPECT_EQ(read_file("models/branches.json").compilation->optimizer.weight_decay, 0.004);
}

TEST(Keras, Optimizers) {
  const nn::Optimizer adam = read_file("keras_files/nested.json").compilation->optimizer;
  EXPECT_EQ(adam.kind, nn::Optimizer::Kind::kAdam);
  EXPECT_FLOAT_EQ(static_cast<float>(adam.learning_rate), 0.01f);
  EXPECT_EQ(adam.beta_1, 0.8);
  EXPECT_EQ(adam.weight_decay, 0.1);
  EXPECT_EQ(adam.clipnorm, 1.0);
  const nn::Optimizer adamw = read_file("keras_files/out_of_order.json").compilation->optimizer;
  EXPECT_EQ(adamw.kind, nn::Optimizer::Kind::kAdamW);
  EXPECT_EQ(adamw.global_clipnorm, 2.0);
  const nn::Optimizer sgd = read_file("keras_files/dicts.json").compilation->optimizer;
  EXPECT_EQ(sgd.kind, nn::Optimizer::Kind::kSgd);
  EXPECT_EQ(sgd.momentum, 0.9);
  EXPECT_TRUE(sgd.nesterov);
  EXPECT_EQ(sgd.clipvalue, 0.25);
  const nn::Optimizer by_name = read_file("keras_files/unary.json").compilation->optimizer;
  EXPECT_EQ(by_name.kind, nn::Optimizer::Kind::kSgd);
  EXPECT_FLOAT_EQ(static_cast<float>(by_name.learning_rate), 0.01f);
}

TEST(Keras, LossesAndMetricsOfSeveralOutputs) {
  const KerasFile nested = read_file("keras_files/nested.json");
  const auto list = nn::resolve(*nested.compilation, nested.model.output_names());
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0].loss->kind, nn::Loss::Kind::kMeanSquaredError);
  EXPECT_FALSE(list[1].loss.has_value());
  EXPECT_EQ(list[2].loss->kind, nn::Loss::Kind::kHuber);
  EXPECT_EQ(list[2].weight, 0.5);
  EXPECT_EQ(list[3].loss->reduction, nn::LossReduction::kSum);
  EXPECT_EQ(list[0].metrics.size(), 1u);
  EXPECT_EQ(list[2].metrics.size(), 2u);
  EXPECT_EQ(list[2].metrics[1].name, "mae");

  const KerasFile dicts = read_file("keras_files/dicts.json");
  const auto named = nn::resolve(*dicts.compilation, dicts.model.output_names());
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[0].name, "one");
  EXPECT_EQ(named[0].weight, 0.25);
  EXPECT_EQ(named[1].loss->kind, nn::Loss::Kind::kCategoricalCrossentropy);
  EXPECT_EQ(named[1].weight, 2);
  EXPECT_EQ(named[1].metrics.size(), 2u);
}

TEST(Keras, LossAndMetricObjects) {
  const nn::Compilation compilation = *read_file("keras_files/out_of_order.json").compilation;
  ASSERT_EQ(compilation.loss.list.size(), 1u);
  EXPECT_TRUE(compilation.loss.list[0]->from_logits);
  EXPECT_EQ(compilation.loss.list[0]->label_smoothing, 0.1);
  ASSERT_EQ(compilation.metrics.list.size(), 2u);
  EXPECT_EQ(compilation.metrics.list[0][0].name, "right");
  EXPECT_EQ(compilation.metrics.list[0][0].threshold, 0.3);
}

TEST(Keras, Initialisers) {
  const auto variables = read_file("keras_files/initialised.json").model.variables();
  const auto kernel = [&](size_t i) { return variables[2 * i].initializer; };
  using Kind = nn::Initializer::Kind;
  EXPECT_EQ(kernel(0).kind, Kind::kConstant);
  EXPECT_EQ(kernel(0).value, 0);
  EXPECT_EQ(kernel(1).value, 1);
  EXPECT_EQ(kernel(2).value, 0.5);
  EXPECT_EQ(kernel(3).kind, Kind::kNormal);
  EXPECT_EQ(kernel(3).stddev, 0.02);
  EXPECT_EQ(kernel(3).seed, 3);
  EXPECT_EQ(kernel(4).kind, Kind::kUniform);
  EXPECT_EQ(kernel(4).maxval, 0.2);
  EXPECT_EQ(kernel(5).kind, Kind::kTruncatedNormal);
  EXPECT_EQ(kernel(5).mean, 0.1);
  EXPECT_EQ(kernel(6).kind, Kind::kVarianceScaling);
  EXPECT_EQ(kernel(6).scale, 2);
  EXPECT_EQ(kernel(6).mode, nn::FanMode::kFanAvg);
  EXPECT_EQ(kernel(6).distribution, nn::ScalingDistribution::kUntruncatedNormal);
  EXPECT_EQ(kernel(7).mode, nn::FanMode::kFanOut);
  EXPECT_EQ(kernel(7).distribution, nn::ScalingDistribution::kUniform);
  EXPECT_EQ(kernel(8).seed, 5);  // a SeedGenerator
  EXPECT_EQ(kernel(8).mode, nn::FanMode::kFanAvg);
  EXPECT_EQ(kernel(9).distribution, nn::ScalingDistribution::kTruncatedNormal);
  EXPECT_EQ(kernel(10).scale, 2);
  EXPECT_EQ(kernel(11).distribution, nn::ScalingDistribution::kUniform);
  EXPECT_EQ(kernel(12).scale, 1);
  EXPECT_EQ(kernel(14).gain, 1.5);
  EXPECT_EQ(kernel(15).kind, Kind::kIdentity);
  EXPECT_EQ(variables[32].regularizer.l1, 0.10000000149011612);  // Keras keeps l1 as a float32
  EXPECT_EQ(variables[33].regularizer.l2, 0.2);
  EXPECT_EQ(variables[34].regularizer.l2, 0.01);
  EXPECT_FALSE(variables[34].trainable);
}

TEST(Keras, OtherFloatTypesAreWarnedOf) {
  EXPECT_EQ(read_file("keras_files/half.json").warnings,
            (std::vector<std::string>{
                "'dtype' is 'float16', and Espalier computes in float32: 'keras_files/half.json', layer 'input_layer' (InputLayer)",
                "'batch_shape' fixes the batch at 8, and the batch size of the run is used: 'keras_files/half.json', layer 'input_layer' "
                "(InputLayer)",
                "'dtype' is 'mixed_bfloat16', and Espalier computes in float32: 'keras_files/half.json', layer 'dense' (Dense)"}));
}

TEST(Keras, AStackWithoutAnyShapeWaitsForIt) {
  KerasFile file = read_file("keras_files/shapeless.json");
  EXPECT_FALSE(file.model.built());
  file.model.build({7});
  EXPECT_EQ(variables_of(file.model), variables_of(read_file("keras_files/built.json").model));
}

// --- forms -------------------------------------------------------------------------------------------------------------------------------

TEST(KerasForms, WrappersAroundTheModel) {
  const Json model = Json::parse(content("models/two_dense.json"));
  const Json variables = variables_of(read(model).model);
  EXPECT_EQ(variables_of(read(Json(model.dump())).model), variables);               // json.dump(model.to_json(), f)
  EXPECT_EQ(variables_of(read(Json(Json(model.dump()).dump())).model), variables);  // twice
  EXPECT_EQ(variables_of(read(Json{{"modelTopology", {{"model_config", model}}}}).model), variables);
  EXPECT_EQ(variables_of(read(Json{{"modelTopology", {{"model_config", model.dump()}}}}).model), variables);
  EXPECT_EQ(variables_of(read(model["config"]).model), variables);  // a bare config
  EXPECT_EQ(variables_of(read_keras("\xEF\xBB\xBF  \n" + model.dump(2) + "\n", "m.json").model), variables);
  Json other = model;  // noise, and a version that is TensorFlow's
  other.erase("module");
  other["backend"] = "tensorflow";
  other["keras_version"] = "2.18.0";
  EXPECT_EQ(variables_of(read(other).model), variables);
}

TEST(KerasForms, AFunctionalModelMayBeCalledModelOrComeBare) {
  Json model = Json::parse(content("models/branches.json"));
  const Json variables = variables_of(read(model).model);
  EXPECT_EQ(variables_of(read(model["config"]).model), variables);
  model["class_name"] = "Model";
  EXPECT_EQ(variables_of(read(model).model), variables);
}

TEST(KerasForms, EndsFlatNestedAndNamed) {
  const std::vector<Json> rest = {called(dense("d", 3), {{tensor("x")}})};
  for (const Json& outputs : {Json{"d", 0, 0}, Json{{"d", 0, 0}}, Json{{"d", Json{"d", 0, 0}}}}) {
    const nn::Model model = read(x_and(rest, outputs)).model;
    EXPECT_EQ(model.output_names(), std::vector<std::string>{"d"}) << outputs;
    EXPECT_EQ(model.output_shapes(), std::vector<Dims>{Dims{3}}) << outputs;
  }
  const Json flat_input = functional({called(input("x", {nullptr, 4}), {}), rest[0]}, {"x", 0, 0}, {{"d", 0, 0}});
  EXPECT_EQ(read(flat_input).model.input_names(), std::vector<std::string>{"x"});
}

TEST(KerasForms, NamesOfADictAreThoseOfTheData) {
  const Json file = functional({called(input("in", {nullptr, 4}), {}), called(dense("d", 3), {{tensor("in")}})}, {{"image", {"in", 0, 0}}},
                               {{"digit", {"d", 0, 0}}});
  const nn::Model model = read(file).model;
  EXPECT_EQ(model.input_names(), std::vector<std::string>{"image"});
  EXPECT_EQ(model.output_names(), std::vector<std::string>{"digit"});
  EXPECT_EQ(model.variables()[0].path, "d/kernel");
}

// A nested Functional counts its calls from 1 among the outputs of the model around it, and from 0 elsewhere; a Sequential from 0 always.
TEST(KerasForms, CallsOfNestedModels) {
  Json inner = functional({called(input("i", {nullptr, 4}), {}), called(dense("d", 4), {{tensor("i")}})}, {{"i", 0, 0}}, {{"d", 0, 0}});
  inner["config"]["name"] = "inner";
  const std::vector<Json> rest = {called(inner, {{tensor("x")}, {tensor("inner", 0)}}), called(dense("h", 2), {{tensor("inner", 1)}})};
  const nn::Model model = read(x_and(rest, {{"inner", 1, 0}, {"inner", 2, 0}, {"h", 0, 0}})).model;
  EXPECT_EQ(model.parameter_count(), 4 * 4 + 4 + 4 * 2 + 2);
  EXPECT_EQ(model.output_names(), (std::vector<std::string>{"inner", "inner_1", "h"}));
  EXPECT_EQ(error_of(x_and(rest, {{"inner", 3, 0}})),
            "a tensor comes from call 2 of 'inner', which has 2 calls: 'm.json', 'output_layers'; write the model again");
  EXPECT_EQ(error_of(x_and(rest, {{"inner", 0, 0}})),
            "a tensor comes from call -1 of 'inner', which has 2 calls: 'm.json', 'output_layers'; write the model again");

  Json stack = sequential({input("i", {nullptr, 4}), dense("d", 4)});
  stack["config"]["name"] = "stack";
  const nn::Model twice = read(x_and({called(stack, {{tensor("x")}, {tensor("stack", 0)}})}, {"stack", 1, 0})).model;
  EXPECT_EQ(twice.variables()[0].path, "stack/d/kernel");
}

TEST(KerasForms, AStoredCallThatNobodyUsesIsWarnedOf) {
  Json stack = sequential({input("i", {nullptr, 4}), dense("d", 4)});
  stack["config"]["name"] = "sequential";
  // Keras 3.2 wrote call 0 twice for a Sequential called on two inputs.
  const Json file = x_and({called(stack, {{tensor("x")}, {tensor("x")}}),
                           called(layer("Add", {{"name", "add"}}), {{Json{tensor("sequential", 0), tensor("sequential", 0)}}})},
                          {"add", 0, 0});
  EXPECT_EQ(read(file).warnings, std::vector<std::string>{"call 1 of 'sequential' is stored but no one uses it: 'm.json'"});
  const Json unused = x_and({called(dense("d", 3), {{tensor("x")}}), called(dense("e", 3), {})}, {"d", 0, 0});
  EXPECT_EQ(read(unused).warnings, std::vector<std::string>{"layer 'e' is stored but never called: 'm.json'"});
}

TEST(KerasForms, ArgumentsOfACall) {
  const auto model = [](const Json& args, const Json& kwargs) {
    return x_and({called(layer("Add", {{"name", "add"}}), {args}, kwargs)}, {"add", 0, 0});
  };
  const Json two = Json::array({tensor("x"), tensor("x")});
  EXPECT_EQ(error_of(model(Json::array({two}), {{"training", false}, {"mask", nullptr}})), "no error");
  EXPECT_EQ(error_of(model(Json::array({two}), {{"training", nullptr}, {"mask", {nullptr, nullptr}}})), "no error");
  EXPECT_EQ(error_of(model(Json::array(), {{"inputs", two}})), "no error");
  EXPECT_EQ(error_of(model(Json::array({two}), {{"training", true}})),
            "the layer is called with training=true: 'm.json', layer 'add' (Add); leave it to train and evaluate to set it");
  EXPECT_EQ(error_of(model(Json::array({two}), {{"mask", tensor("x")}})),
            "the layer is called with 'mask' = a tensor: 'm.json', layer 'add' (Add); Espalier's layers take one argument");
  EXPECT_EQ(error_of(model(Json::array({tensor("x"), 3}), Json::object())),
            "the layer is called with '3': 'm.json', layer 'add' (Add); only tensors can be passed to a layer");
  EXPECT_EQ(error_of(model(Json::array(), Json::object())),
            "the layer is called without a tensor: 'm.json', layer 'add' (Add); write the model again with Keras 3's model.to_json()");
}

TEST(KerasForms, ShapeOfAStack) {
  const Json bare = sequential({dense("d", 3)});
  EXPECT_FALSE(read(bare).model.built());
  Json in_config = bare, in_build = bare, on_layer = bare, on_layer_build = bare;
  in_config["config"]["build_input_shape"] = {nullptr, 4};
  in_build["build_config"] = {{"input_shape", {nullptr, 4}}};
  on_layer["config"]["layers"][0]["config"]["batch_shape"] = {nullptr, 4};
  on_layer_build["config"]["layers"][0]["build_config"] = {{"input_shape", {nullptr, 4}}};
  for (const Json& file : {in_config, in_build, on_layer, on_layer_build}) {
    const nn::Model model = read(file).model;
    EXPECT_EQ(model.input_names(), std::vector<std::string>{"input_layer"});
    EXPECT_EQ(model.variables()[0].path, "s/d/kernel");
    EXPECT_EQ(model.parameter_count(), 15);
  }
  Json inner = sequential({input("i", {nullptr, 4}), dense("d", 3)});
  inner["config"]["name"] = "inner";
  EXPECT_EQ(read(sequential({inner})).model.input_shapes(), std::vector<Dims>{Dims{4}});
}

TEST(KerasForms, MissingNamesAreKeras) {
  Json file = sequential({input("x", {nullptr, 4}), dense("d", 4), dense("d", 4), layer("BatchNormalization", Json::object())});
  for (int i : {1, 2}) file["config"]["layers"][i]["config"].erase("name");
  file["config"].erase("name");
  const auto variables = read(file).model.variables();
  EXPECT_EQ(variables[0].path, "sequential/dense/kernel");
  EXPECT_EQ(variables[2].path, "sequential/dense_1/kernel");
  EXPECT_EQ(variables[4].path, "sequential/batch_normalization/gamma");
}

TEST(KerasForms, ActivationsInitialisersAndPoliciesInEveryForm) {
  const auto with = [](const char* field, const Json& value) {
    Json one = dense("d", 4);
    one["config"][field] = value;
    return one_layer(one);
  };
  const Json function = {{"module", "builtins"}, {"class_name", "function"}, {"config", "relu"}, {"registered_name", "function"}};
  const Json leaky = layer("LeakyReLU", {{"name", "l"}, {"negative_slope", 0.3}});
  const Json policy = {{"module", "keras"},
                       {"class_name", "DTypePolicy"},
                       {"config", {{"name", "float32"}}},
                       {"registered_name", nullptr},
                       {"shared_object_id", 2}};
  for (const Json& value : {Json(nullptr), Json("swish"), Json("relu"), function, leaky})
    EXPECT_EQ(error_of(with("activation", value)), "no error");
  for (const Json& value :
       {Json("he_normal"), Json("glorot_uniform"),
        Json{{"class_name", "OrthogonalInitializer"}, {"config", {{"gain", 1.0}, {"seed", nullptr}}}},
        Json{{"class_name", "VarianceScaling"}, {"config", {{"scale", 1.0}, {"mode", "fan_in"}, {"distribution", "normal"}}}}}) {
    EXPECT_EQ(error_of(with("kernel_initializer", value)), "no error") << value;
  }
  for (const Json& value : {Json("float32"), policy}) EXPECT_EQ(error_of(with("dtype", value)), "no error");
  for (const char* unused : {"batch_shape", "lora_rank", "quantization_config"}) EXPECT_EQ(error_of(with(unused, nullptr)), "no error");
  EXPECT_EQ(error_of(with("later_addition", false)), "no error");
}

TEST(KerasForms, OperationsOnTensors) {
  const auto operation = [](const std::string& name, const Json& args) {
    const Json one = {{"module", "keras.src.ops.numpy"}, {"class_name", name}, {"config", {{"name", "op"}}}, {"registered_name", name}};
    return x_and({called(one, {args})}, {"op", 0, 0});
  };
  EXPECT_EQ(error_of(operation("Multiply", {tensor("x"), 2})), "no error");
  EXPECT_EQ(error_of(operation("Subtract", {1.5, tensor("x")})), "no error");
  EXPECT_EQ(error_of(operation("Add", {tensor("x"), tensor("x")})), "no error");
  EXPECT_EQ(error_of(operation("Divide", {tensor("x"), 0})),
            "only a division by a number other than 0 can be read: 'm.json', layer 'op' (operation Divide); use keras.layers.Rescaling");
  EXPECT_EQ(error_of(operation("Matmul", {tensor("x"), tensor("x")})).substr(0, 92),
            "'operation Matmul' is not a layer that Espalier has: 'm.json', layer 'op' (operation Matmul)");
}

// Archives mark a layer that stands in two models; to_json() does not, and Keras too then reads two layers.
TEST(KerasForms, SharedObjects) {
  Json file = Json::parse(content("keras_files/nested.json"));
  const int64_t apart = read(file).model.parameter_count();
  for (Json& one : file["config"]["layers"]) {
    if (one["config"]["name"] == "chain") one["shared_object_id"] = 77;
    if (one["config"]["name"] == "stack") one["config"]["layers"][2]["shared_object_id"] = 77;
  }
  EXPECT_EQ(read(file).model.parameter_count(), apart - 8 * 8 - 8);
}

TEST(KerasForms, TwoNestedModelsMayUseOneName) {
  const auto inner = [](const std::string& name) {
    Json model = functional({called(input("i", {nullptr, 4}), {}), called(dense("d", 4), {{tensor("i")}})}, {{"i", 0, 0}}, {{"d", 0, 0}});
    model["config"]["name"] = name;
    return called(model, {{tensor("x")}});
  };
  const nn::Model model = read(x_and({inner("one"), inner("two")}, {{"one", 1, 0}, {"two", 1, 0}})).model;
  EXPECT_EQ(model.variables()[0].path, "d/kernel");
  EXPECT_EQ(model.variables()[2].path, "two/d/kernel");
}

}  // namespace
}  // namespace espalier
