// Uses: interop
// Every wrong Keras file with its whole message.
#include <fmt/format.h>

#include <functional>

#include "espalier/interop/keras_layers.h"
#include "keras_json.h"
#include "sanitizers.h"

namespace espalier {
namespace {

TEST(KerasErrors, NotAModelAtAll) {
  const std::string give = "give what model.to_json() of Keras 3 writes";
  EXPECT_EQ(error_of_text(""), "the model file is empty: 'm.json'; " + give);
  EXPECT_EQ(error_of_text(" \n\t"), "the model file is empty: 'm.json'; " + give);
  EXPECT_EQ(error_of_text("hello"), "this is not JSON: 'm.json', line 1, column 1; " + give);
  EXPECT_EQ(error_of_text("{\"class_name\":\n  oops}"), "this is not JSON: 'm.json', line 2, column 3; " + give);
  EXPECT_EQ(error_of_text("{\"class_name\": \"Seq"), "the file ends before its JSON does: 'm.json', line 1, column 20; write it again");
  EXPECT_EQ(error_of_text("{\"a\": 1}\n{"), "this is not JSON: 'm.json', line 2, column 1; " + give);
  EXPECT_EQ(error_of_text("{\"a\": \"\xff\"}"), "this is not JSON: 'm.json', line 1, column 8; " + give);
  EXPECT_EQ(error_of_text("[1e999]"), "a number is too large: 'm.json'; " + give);
  EXPECT_EQ(error_of_text("[1, 2]"), "this JSON is no Keras model, it has neither 'class_name' nor 'layers': 'm.json'; " + give);
  EXPECT_EQ(error_of_text("17"), "this JSON is no Keras model, it has neither 'class_name' nor 'layers': 'm.json'; " + give);
  EXPECT_EQ(error_of_text("{}"), "this JSON is no Keras model, it has neither 'class_name' nor 'layers': 'm.json'; " + give);
  EXPECT_EQ(error_of_text("{\"class_name\": \"Sequential\"}"), "the model ('Sequential') has no 'config': 'm.json'; " + give);
  EXPECT_EQ(error_of_text("{\"class_name\": \"Sequential\", \"config\": {}}"), "the model has no list 'layers': 'm.json'; " + give);
  EXPECT_EQ(error_of_text("PK\x03\x04zip"),
            "this is an archive (.keras), not JSON: 'm.json'; give its config.json, or what model.to_json() writes");
  EXPECT_EQ(error_of_text("\x89HDF\r\n"), "this is an HDF5 file, not JSON: 'm.json'; load it in Keras 3 and write model.to_json()");
}

TEST(KerasErrors, EveryTruncationIsAnError) {
  const std::string text = content("models/uneven.json");
  for (size_t length = 0; length + 2 < text.size(); length += 7) EXPECT_NE(error_of_text(text.substr(0, length)), "no error") << length;
}

TEST(KerasErrors, Depth) {
  const std::string deep =
      "more than 500 brackets inside one another: 'm.json', line 1, column 501; give what model.to_json() of Keras 3 writes";
  EXPECT_EQ(error_of_text(std::string(200000, '[')), deep);
  EXPECT_EQ(error_of_text(Json(std::string(200000, '[')).dump()), deep);
  std::string objects;
  for (int i = 0; i < 200000; ++i) objects += "{\"a\":";
  EXPECT_NE(error_of_text(objects).find("more than 500 brackets"), std::string::npos);
  Json nested = dense("d", 3);
  for (int i = 0; i < 60; ++i) {
    nested = sequential({input("x", {nullptr, 3}), nested});
    nested["config"]["name"] = fmt::format("s{}", i);
  }
  EXPECT_EQ(error_of(nested), "no error");
}

TEST(KerasErrors, NamesOfAMegabyteAreToldAtOnce) {
  const std::string name(1 << 20, 'a'), other = name.substr(1) + "b";
  const std::string error = error_of(x_and({called(dense(name, 3), {tensor(other)})}, {{name, 0, 0}}));
  EXPECT_TRUE(error.ends_with("known: " + name + ", x"));
}

// As in tests/fuzz/regressions/keras: each of these crashed, or would have run for ever.
TEST(KerasErrors, AxesBeyondAllRanks) {
  const std::vector<int> many(12, -1);
  EXPECT_EQ(error_of(one_layer(layer("LayerNormalization", {{"name", "n"}, {"axis", many}}))),
            "layer 'n' (LayerNormalization) names an axis twice: 'm.json', layer 'n' (LayerNormalization)");
  EXPECT_EQ(error_of(one_layer(layer("Normalization", {{"name", "n"}, {"axis", many}}))),
            "layer 'n' (Normalization) names an axis twice: 'm.json', layer 'n' (Normalization)");
}

TEST(KerasErrors, TargetShapesThatOverflow) {
  const auto reshape = [](const std::vector<int64_t>& target) {
    return error_of(one_layer(layer("Reshape", {{"name", "r"}, {"target_shape", target}})));
  };
  const std::string zero = reshape({65536, 65536, 65536, 65536, -1});  // 2^64 is 0 in 64 bits
  EXPECT_NE(zero.find("shape (65536, 65536, 65536, 65536, 1) has more than 2^56 elements: "), std::string::npos) << zero;
  EXPECT_NE(reshape({2147483647, 2147483647, 2147483647}).find("more than 2^56 elements"), std::string::npos);
}

TEST(KerasErrors, OneSharedIdOnTwoKindsOfLayers) {
  Json two = functional({called(input("i", {nullptr, 4}), {}), called(dense("p", 4), {tensor("i")}), called(dense("q", 4), {tensor("i")})},
                        {{"i", 0, 0}}, {{"p", 0, 0}, {"q", 0, 0}});
  two = called(two, {tensor("d")});
  Json first = called(dense("d", 4), {tensor("x")});
  first["shared_object_id"] = two["shared_object_id"] = 7;
  EXPECT_EQ(error_of(x_and({first, two}, {{"f", 1, 1}})),
            "'shared_object_id' 7 is that of another layer too (Dense): 'm.json', layer 'f' (Functional); write the model again");
}

TEST(KerasErrors, ModelsThatCallModelsTwice) {
  Json model = functional({called(input("x", {nullptr, 4}), {}), called(dense("d", 4), {tensor("x")})}, {{"x", 0, 0}}, {{"d", 0, 0}});
  for (int i = 0; i < 40; ++i) {
    model["config"]["name"] = fmt::format("m{}", i);
    const std::string name = model["config"]["name"], in = fmt::format("x{}", i);
    model = functional({called(input(in, {nullptr, 4}), {}), called(model, {tensor(in), tensor(name)})}, {{in, 0, 0}}, {{name, 2, 0}});
  }
  const std::string error = error_of(model);
  EXPECT_NE(error.find("makes more than 1048576 calls of layers"), std::string::npos) << error;
}

TEST(KerasErrors, OlderKerasIsToldByName) {
  const std::string again = "; load it in Keras 3 and write model.to_json() again";
  Json two = sequential({layer("Dense", {{"name", "d"}, {"units", 3}, {"batch_input_shape", {nullptr, 4}}})});
  EXPECT_EQ(error_of(two), "this is a Keras 2 file: 'm.json', layer 'd' has 'batch_input_shape'" + again);
  two["config"] = two["config"]["layers"];
  EXPECT_EQ(error_of(two), "this is a Keras 2 file: 'm.json', the config of a Sequential is a list" + again);
  Json lists = x_and({called(dense("d", 3), {})}, {{"d", 0, 0}});
  lists["config"]["layers"][1]["inbound_nodes"] = {{{"x", 0, 0, Json::object()}}};
  EXPECT_EQ(error_of(lists), "this is a Keras 2 file: 'm.json', layer 'd' has 'inbound_nodes as lists'" + again);
  const Json version = {{"class_name", "Sequential"},
                        {"config", {{"name", "s"}, {"layers", {{{"class_name", "Dense"}, {"config", {{"name", "d"}, {"units", 3}}}}}}}},
                        {"keras_version", "2.2.4-tf"}};
  EXPECT_EQ(error_of(version), "this is a Keras 2 file: 'm.json', 'keras_version' is '2.2.4-tf'" + again);
  const Json policy = sequential(
      {layer("Dense", {{"name", "d"}, {"units", 3}, {"dtype", {{"class_name", "Policy"}, {"config", {{"name", "mixed_float16"}}}}}})});
  EXPECT_EQ(error_of(policy), "this is a Keras 2 file: 'm.json', layer 'd' has 'dtype as Policy'" + again);
  const Json one = {
      {"class_name", "Sequential"},
      {"config", {{{"class_name", "Dense"}, {"config", {{"name", "d"}, {"output_dim", 3}, {"batch_input_shape", {nullptr, 4}}}}}}}};
  EXPECT_EQ(error_of(one), "this is a Keras 1 file: 'm.json', layer 'd' has 'output_dim'" + again);
  const Json dropout = {{"class_name", "Sequential"}, {"config", {{{"class_name", "Dropout"}, {"config", {{"p", 0.5}}}}}}};
  EXPECT_EQ(error_of(dropout), "this is a Keras 1 file: 'm.json', layer 'Dropout' has 'p'" + again);
}

TEST(KerasErrors, LayersAndClassesThatAreNotHere) {
  EXPECT_EQ(error_of(one_layer(layer("Conv2D", {{"name", "c"}, {"filters", 3}}))),
            "'Conv2D' is not a layer that Espalier has: 'm.json', layer 'c' (Conv2D); it has Activation, Add, Average, BatchNormalization, "
            "Concatenate, Dense, Dropout, ELU, Flatten, LayerNormalization, LeakyReLU, Maximum, Minimum, Multiply, Normalization, ReLU, "
            "Rescaling, Reshape, Softmax, Subtract");
  Json custom = dense("d", 3);
  custom["module"] = nullptr;
  custom["registered_name"] = "Custom>Dense";
  EXPECT_EQ(error_of(one_layer(custom)),
            "'Custom>Dense' is a class of its author, not of Keras: 'm.json', layer 'd' (Dense); replace it by Keras' own layers");
  custom["registered_name"] = "Dense";
  EXPECT_EQ(error_of(one_layer(custom)),
            "'Dense' is a class of its author, not of Keras: 'm.json', layer 'd' (Dense); replace it by Keras' own layers");
  custom["module"] = "keras_hub.layers";
  EXPECT_NE(error_of(one_layer(custom)), "no error");
  EXPECT_EQ(error_of({{"module", "app"}, {"class_name", "Mine"}, {"config", {{"layers", Json::array()}}}, {"registered_name", "app>Mine"}}),
            "the model's class 'Mine' is not Keras' own: 'm.json'; build it as a Sequential or Functional model in Keras and write "
            "model.to_json() again");
  EXPECT_EQ(error_of(dense("d", 3)),
            "the file holds a 'Dense', not a model: 'm.json'; build it as a Sequential or Functional model in Keras and write "
            "model.to_json() again");
}

TEST(KerasErrors, FieldsOfLayers) {
  const auto error = [](const std::string& class_name, Json config) {
    config["name"] = "l";
    return error_of(one_layer(layer(class_name, config)));
  };
  const std::string at = ": 'm.json', layer 'l' (Dense)";
  const std::string range = "; give a whole number from 1 to 2147483647";
  EXPECT_EQ(error("Dense", Json::object()), "there is no 'units'" + at + range);
  for (const Json& units :
       {Json(-3), Json(0), Json(1e30), Json(2.5), Json("8"), Json(int64_t{1} << 40), Json(UINT64_MAX), Json::array(), Json(true)}) {
    EXPECT_EQ(error("Dense", {{"units", units}}), fmt::format("'units' is '{}'", units.is_string() ? "8" : units.dump()) + at + range);
  }
  EXPECT_EQ(error("Dense", {{"units", 3}, {"use_bias", "yes"}}), "'use_bias' is 'yes'" + at + "; give true or false");
  EXPECT_EQ(error("Dense", {{"units", 3}, {"activation", "relv"}}),
            "there is no activation 'relv': 'm.json', layer 'l' (Dense), 'activation'; did you mean 'relu'?");
  EXPECT_EQ(error("Dense", {{"units", 3}, {"activation", 7}}),
            "'activation' is '7'" + at + "; give a name, or an object with 'class_name' and 'config'");
  EXPECT_EQ(error("Dense", {{"units", 3}, {"kernel_initializer", "glorot_unifrm"}}),
            "there is no initializer 'glorot_unifrm': 'm.json', layer 'l' (Dense), 'kernel_initializer'; did you mean 'glorot_uniform'?");
  EXPECT_EQ(error("Dense", {{"units", 3}, {"kernel_regularizer", {{"class_name", "L2"}, {"config", {{"l2", -1}}}}}}),
            "a regularizer's factor is '-1': 'm.json', layer 'l' (Dense), 'kernel_regularizer'; give a number that is 0 or more");
  EXPECT_EQ(error("Dense", {{"units", 3}, {"kernel_constraint", {{"class_name", "MaxNorm"}, {"config", {{"max_value", 2}}}}}}),
            "'kernel_constraint' is 'MaxNorm', and Espalier has no constraints" + at + "; give null");
  EXPECT_EQ(error("Dense", {{"units", 3}, {"lora_rank", 4}}),
            "'lora_rank' is '4', which Espalier does not have" + at + "; only null can be read");
  EXPECT_EQ(error("Dense", {{"units", 3}, {"gropus", 2}}),
            "'gropus' is '2', a field that Espalier does not know" + at + "; take it out, or give null if it changes nothing");
  EXPECT_EQ(error("Dense", {{"units", 3}, {"dtype", "int8"}}), "'dtype' is 'int8'" + at + "; use float32");
  EXPECT_EQ(error("Dropout", {{"rate", 0.5}, {"noise_shape", {1, 4}}}),
            "'noise_shape' is '[1,4]', which Espalier does not have: 'm.json', layer 'l' (Dropout); only null or [] can be read");
  EXPECT_EQ(error("Dropout", {{"rate", 1.5}}),
            "layer 'l' (Dropout) has rate=1.5: 'm.json', layer 'l' (Dropout); give a number from 0 to 1");
  EXPECT_EQ(error("BatchNormalization", {{"renorm", true}}),
            "'renorm' is 'true', which Espalier does not have: 'm.json', layer 'l' (BatchNormalization); only null or false can be read");
  EXPECT_EQ(error("BatchNormalization", {{"axis", 3}}),
            "axis 3 of layer 'l' (BatchNormalization) does not exist: 'm.json', layer 'l' (BatchNormalization); its input has 2 dims, the "
            "batch counted");
  EXPECT_EQ(error("BatchNormalization", {{"axis", {1, 2}}}), "'axis' is '[1,2]': 'm.json', layer 'l' (BatchNormalization); give one axis");
  EXPECT_EQ(error("Reshape", {{"target_shape", {3}}}),
            "layer 'l' (Reshape) cannot make (3,) of its input (None, 4): 'm.json', layer 'l' (Reshape); a sample has 4 elements");
  EXPECT_EQ(error("Reshape", {{"target_shape", {1, 1, 1, 1, 1, 1, 1, 4}}}),
            "'target_shape' is '[1,1,1,1,1,1,1,4]': 'm.json', layer 'l' (Reshape); a sample has at most 7 dims");
  EXPECT_EQ(error("Flatten", {{"data_format", "NCHW"}}),
            "'data_format' is 'NCHW': 'm.json', layer 'l' (Flatten); give 'channels_last' or 'channels_first'");
  EXPECT_EQ(error("Rescaling", {{"scale", {1, 2}}}), "'scale' is '[1,2]': 'm.json', layer 'l' (Rescaling); give a number");
}

TEST(KerasErrors, Inputs) {
  const auto error = [](const Json& shape) { return error_of(sequential({input("x", shape), dense("d", 3)})); };
  const std::string at = ": 'm.json', layer 'x' (InputLayer); ";
  EXPECT_EQ(error({nullptr, nullptr, 3}),
            "'batch_shape' is '[null,null,3]'" + at + "every dim but the batch needs a size; give it in keras.Input");
  EXPECT_EQ(error({nullptr, -3}), "'batch_shape' is '[null,-3]'" + at + "sizes are whole numbers from 1 to 2147483647");
  EXPECT_EQ(error({nullptr, 1e30}), "'batch_shape' is '[null,1e+30]'" + at + "sizes are whole numbers from 1 to 2147483647");
  EXPECT_EQ(error({nullptr, 2, 2, 2, 2, 2, 2, 2, 2}), "'batch_shape' is '[null,2,2,2,2,2,2,2,2]'" + at + "at most 8 dims can be had");
  EXPECT_EQ(error({nullptr, 1 << 30, 1 << 30, 1 << 30}),
            "a sample has the shape (1073741824, 1073741824, 1073741824), more than 2^44 elements" + at + "make the layer smaller");
  EXPECT_EQ(error({nullptr, 1 << 30, 1 << 30}),
            "a sample has the shape (1073741824, 1073741824), more than 2^44 elements" + at + "make the layer smaller");
  EXPECT_EQ(error("four"), "'batch_shape' is 'four'" + at + "give a list of sizes, the batch first");
  Json sparse = sequential({input("x", {nullptr, 4}), dense("d", 3)});
  sparse["config"]["layers"][0]["config"]["sparse"] = true;
  EXPECT_EQ(error_of(sparse), "'sparse' is 'true', which Espalier does not have" + at + "only null or false can be read");
  sparse["config"]["layers"][0]["config"]["sparse"] = false;
  sparse["config"]["layers"][0]["config"]["dtype"] = "string";
  EXPECT_EQ(error_of(sparse), "'dtype' is 'string'" + at + "use float32");
}

TEST(KerasErrors, SizesThatCannotBeCounted) {
  Json wide = sequential({input("x", {nullptr, 1 << 20, 1 << 5}), layer("Flatten", {{"name", "f"}}), dense("d", 1 << 30)});
  EXPECT_EQ(error_of(wide),
            "'kernel' has the shape (33554432, 1073741824), more than 2^44 elements: 'm.json', layer 'd' (Dense); make the layer smaller");
  wide["config"]["layers"][1] = dense("e", 1 << 30);
  EXPECT_EQ(error_of(wide),
            "its result has the shape (1048576, 1073741824), more than 2^44 elements: 'm.json', layer 'e' (Dense); make the layer smaller");
}

TEST(KerasErrors, Graphs) {
  const Json d = called(dense("d", 3), {{tensor("x")}});
  EXPECT_EQ(error_of(x_and({called(dense("d", 3), {{tensor("xy")}})}, {"d", 0, 0})),
            "a tensor comes from the layer 'xy', which is not in the model: 'm.json', layer 'd' (Dense); did you mean 'x'?");
  EXPECT_EQ(error_of(x_and({called(dense("d", 3), {{tensor("x", 1)}})}, {"d", 0, 0})),
            "a tensor comes from call 1 of 'x', which has 1 call: 'm.json', layer 'd' (Dense); write the model again");
  EXPECT_EQ(error_of(x_and({called(dense("d", 3), {{tensor("x", 0, 2)}})}, {"d", 0, 0})),
            "a tensor is output 2 of 'x', which has 1: 'm.json', layer 'd' (Dense); write the model again");
  EXPECT_EQ(error_of(x_and({called(dense("d", 3), {{tensor("e")}}), called(dense("e", 3), {{tensor("d")}})}, {"e", 0, 0})),
            "call 0 of 'd' waits for its own result: 'm.json', layer 'd' (Dense); a model cannot run in a circle");
  EXPECT_EQ(error_of(x_and({called(dense("d", 3), {{tensor("d")}})}, {"d", 0, 0})),
            "call 0 of 'd' waits for its own result: 'm.json', layer 'd' (Dense); a model cannot run in a circle");
  EXPECT_EQ(error_of(x_and({d, d}, {"d", 0, 0})), "two layers are called 'd': 'm.json'; rename one of them");
  EXPECT_EQ(error_of(x_and({d}, Json::array())),
            "there is no 'output_layers': 'm.json'; write the model again with Keras 3's model.to_json()");
  EXPECT_EQ(
      error_of(x_and({d}, Json::array({Json::array({"d", 0})}))),
      "'output_layers' is '[\"d\",0]', not a layer, a call and an output: 'm.json'; write the model again with Keras 3's model.to_json()");
  EXPECT_EQ(error_of(functional({called(input("x", {nullptr, 4}), {}), d}, {{"d", 0, 0}}, {{"d", 0, 0}})),
            "the model's input is no InputLayer: 'm.json', layer 'd' (Dense); start the model at keras.Input");
  EXPECT_EQ(error_of(x_and({called(input("y", {nullptr, 4}), {}), d}, {"d", 0, 0})),
            "the InputLayer is not among the model's inputs: 'm.json', layer 'y' (InputLayer); add it to 'input_layers'");
  EXPECT_EQ(error_of(x_and({called(layer("Add", {{"name", "a"}}), {{Json{tensor("x"), tensor("d")}}}), d}, {"a", 0, 0})).substr(0, 36),
            "layer 'a' (Add) cannot combine shape");
  const Json shared = x_and({called(dense("d", 3), {{tensor("x")}, {tensor("d", 0)}})}, {"d", 1, 0});
  EXPECT_EQ(error_of(shared).substr(0, 60), "layer 'd' (Dense) has its weight 'kernel' of shape (4, 3) fr");
  EXPECT_EQ(error_of(sequential({})), "the model has no layers: 'm.json'; add layers, and write the model again");
  EXPECT_EQ(error_of(sequential({dense("d", 3), input("x", {nullptr, 3})})),
            "an InputLayer stands behind another layer: 'm.json', layer 'x' (InputLayer); put it first");
  EXPECT_EQ(error_of(one_layer(dense("a/b", 3))),
            "the name 'a/b' has a '/', which separates the parts of a variable's path: 'm.json', layer 'a/b' (Dense); rename the layer");
  Json inner = sequential({input("i", {nullptr, 4}), dense("d", -1)});
  inner["config"]["name"] = "inner";
  EXPECT_EQ(error_of(one_layer(inner)),
            "'units' is '-1': 'm.json', layer 'd' (Dense) within 'inner'; give a whole number from 1 to 2147483647");
}

TEST(KerasErrors, CompileSection) {
  const auto compiled = [](const Json& section) {
    Json file = one_layer(dense("d", 3));
    file["compile_config"] = section;
    return file;
  };
  const auto optimizer = [&](const std::string& class_name, const Json& config) {
    return error_of(
        compiled({{"optimizer", {{"module", "keras.optimizers"}, {"class_name", class_name}, {"config", config}}}, {"loss", "mse"}}));
  };
  EXPECT_FALSE(read(compiled(Json::object())).compilation.has_value());
  EXPECT_EQ(optimizer("RMSprop", Json::object()), "there is no optimizer 'RMSprop': 'm.json', 'compile_config'; known: sgd, adam, adamw");
  const Json schedule = {{"module", "keras.optimizers.schedules"}, {"class_name", "ExponentialDecay"}, {"config", Json::object()}};
  EXPECT_EQ(optimizer("Adam", {{"learning_rate", schedule}}),
            "'learning_rate' is the schedule 'ExponentialDecay', which Espalier does not have: 'm.json', 'compile_config', 'Adam'; give a "
            "number, or --learning-rate");
  EXPECT_EQ(optimizer("Adam", {{"amsgrad", true}}),
            "'amsgrad' is 'true', which Espalier does not have: 'm.json', 'compile_config', 'Adam'; only null or false can be read");
  EXPECT_EQ(optimizer("SGD", {{"momentum", 3}}).substr(0, 13), "momentum is 3");
  EXPECT_EQ(error_of(compiled({{"optimizer", "adam"}, {"loss", "msee"}})),
            "there is no loss 'msee': 'm.json', 'compile_config'; did you mean 'mse'?");
  EXPECT_EQ(error_of(compiled({{"optimizer", "adam"}, {"loss", "mse"}, {"metrics", {"acuracy"}}})),
            "there is no metric 'acuracy': 'm.json', 'compile_config'; did you mean 'accuracy'?");
  EXPECT_EQ(error_of(compiled({{"optimizer", "adam"}, {"loss", {{"e", "mse"}}}})),
            "there is no output 'e': loss: 'm.json', 'compile_config'; known: d");
  EXPECT_EQ(error_of(compiled({{"optimizer", "adam"}, {"loss", {"mse", "mae"}}})),
            "loss has 2 entries for 1 output: 'm.json', 'compile_config'; give one for each of 'd', or name the outputs");
  EXPECT_EQ(error_of(compiled({{"optimizer", "adam"}, {"loss", "mse"}, {"loss_weights", {{"d", "x"}}}})),
            "'loss_weights' is '{\"d\":\"x\"}': 'm.json', 'compile_config'; give numbers");
  EXPECT_EQ(error_of(compiled({{"optimizer", "adam"}, {"metrics", {{{"class_name", "Accuracy"}, {"config", Json::object()}}}}})),
            "the metric 'Accuracy' asks for outputs equal to the targets, which Espalier does not have: 'm.json', 'compile_config'; "
            "'accuracy' asks for the right class");
  EXPECT_EQ(read(compiled({{"loss", "mse"}})).warnings,
            std::vector<std::string>{"no 'optimizer' is given, and SGD is used: 'm.json', 'compile_config'"});
  // What the caller replaces is no error.
  const std::string unknown = compiled({{"optimizer", "rmsprop"}, {"loss", "hinge"}, {"metrics", {"auc"}}}).dump();
  EXPECT_NE(error_of_text(unknown), "no error");
  EXPECT_TRUE(read_keras(unknown, "m.json", {.optimizer = true, .loss = true, .metrics = true}).compilation.has_value());
}

// Whatever stands in a field, reading ends in a model or in an Error.
TEST(KerasErrors, AnyValueInAnyFieldEndsWell) {
  const std::vector<Json> values = {
      nullptr,        true, -1, 0, 1e308, int64_t{1} << 62, "", "x", Json::array(), Json::object(), {nullptr}, {{"class_name", 3}},
      {{{"a", 0, 0}}}};
  // Of each field other ones: all of them take a sanitized run minutes, and there the fuzzer goes on from here.
  constexpr size_t kValues = kSanitizesAddresses ? 1 : 4;
  size_t errors = 0, models = 0, turn = 0;
  for (const char* name : {"models/branches.json", "keras_files/unary.json", "keras_files/nested.json", "keras_files/dicts.json",
                           "keras_files/operations.json"}) {
    const Json whole = Json::parse(content(name)), flat = whole.flatten();
    for (const auto& [pointer, old] : flat.items()) {
      for (size_t i = 0; i < kValues; ++i) {
        const Json& value = values[(turn++ * 5) % values.size()];
        Json file = whole;
        file[Json::json_pointer(pointer)] = value;
        try {
          read(file);
          ++models;
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
          EXPECT_NE(std::string(error.what()).find("'m.json'"), std::string::npos) << error.what() << "\n" << pointer << " = " << value;
          ++errors;
        }
      }
    }
  }
  fmt::print("{} changes: {} errors, {} models\n", errors + models, errors, models);
  EXPECT_GT(errors, 250 * kValues);
  EXPECT_GT(models, 250 * kValues);
}

}  // namespace
}  // namespace espalier
