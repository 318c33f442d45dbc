// Uses: ops
// The text form of graphs: what is printed reads back to the same graph, and whatever is read ends in a graph or an Error.
#include "espalier/ir/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>

namespace espalier {
namespace {

const char* const kStep = R"(graph step mesh {'data': 2, 'model': 4}
in %0 variable "dense/kernel" f32[32,64] (None, 'model')
in %1 data "x" f32[8,32] ('data', None)
in %2 scalar "learning rate" f32[]
%3:f32[8,64] = matmul(%1, %0) {factors="mk,kn->mn"} ('data', 'model') "dense"
%4 "hidden":f32[8,64] = relu(%3) (('data', 'model'), None) "dense" because "a \"reason\""
%5:f32[32,64] = matmul(%1, %4) {factors="mk,mn->kn"} (None, 'model')+sum('data') @backward "dense"
%6:f32[32,64], %7:f32[32,64] = momentum_update(%0, %5, %5, %2) {momentum=0.9, nesterov=1} (None, 'model'), (None, 'model') @update
out result "hidden" %4
out variable "dense/kernel" %6
)";

std::string message_of(const std::string& text) {
  try {
    parse_graph(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "no error";
}

TEST(Text, PrintsWhatItRead) { EXPECT_EQ(print(parse_graph(kStep)), kStep); }

TEST(Text, ReadsEveryField) {
  Graph graph = parse_graph(kStep);
  EXPECT_EQ(graph.name, "step");
  ASSERT_TRUE(graph.mesh);
  EXPECT_EQ(*graph.mesh, DeviceMesh({2, 4}, {"data", "model"}));
  ASSERT_EQ(graph.inputs.size(), 3u);
  EXPECT_EQ(graph.inputs[0].role, Role::kVariable);
  EXPECT_EQ(graph.inputs[2].role, Role::kScalar);
  EXPECT_EQ(graph.inputs[2].name, "learning rate");
  EXPECT_EQ(graph.type(2).shape, Dims());
  ASSERT_EQ(graph.ops.size(), 4u);
  EXPECT_EQ(graph.ops[0].operands, (std::vector<ValueId>{1, 0}));
  EXPECT_EQ(graph.ops[0].scope, "dense");
  EXPECT_EQ(graph.ops[1].reason, "a \"reason\"");
  EXPECT_EQ(graph.value(4).name, "hidden");
  EXPECT_EQ(graph.value(4).sharding.dims[0].size(), 2);
  EXPECT_EQ(graph.value(5).sharding.pending, 1u);
  EXPECT_EQ(graph.ops[2].phase, Phase::kBackward);
  EXPECT_EQ(graph.ops[3].attrs.number("momentum"), 0.9);
  EXPECT_EQ(graph.ops[3].attrs.integer("nesterov"), 1);
  EXPECT_EQ(graph.value(7).op, 3);
  EXPECT_EQ(graph.value(7).result, 1);
  ASSERT_EQ(graph.outputs.size(), 2u);
  EXPECT_EQ(graph.outputs[1].role, Role::kVariable);
  EXPECT_EQ(graph.outputs[1].value, 6);
}

TEST(Text, DefaultsAreNotPrinted) {
  EXPECT_EQ(print(Graph()), "");
  const char* plain = "in %0 f32[2]\n%1:f32[2] = exp(%0)\nout %1\n";
  EXPECT_EQ(print(parse_graph(plain)), plain);
  EXPECT_EQ(print(parse_graph("graph mesh {'x': 1}\nin %0 f32[2] ('x',)")), "graph mesh {'x': 1}\nin %0 f32[2]\n");
  EXPECT_EQ(print(parse_graph("graph \"mesh\" mesh {'x': 2} devices [\"cpu:5\", \"cpu:0\"]")),
            "graph \"mesh\" mesh {'x': 2} devices [\"cpu:5\", \"cpu:0\"]\n");
}

TEST(Text, AFewDigitsTakeNoHundredMegabytes) {
  EXPECT_EQ(message_of("graph g mesh {'a': 1048576}"), "the mesh has more than 65536 devices: line 1, column 14");
  EXPECT_EQ(message_of("graph g mesh {'a': 256, 'b': 257}"), "the mesh has more than 65536 devices: line 1, column 14");
}

TEST(Text, ManyAttributesAndResultsAreQuick) {
  std::string attributes = "in %0 f32[2]\n%1 = exp(%0) {a=1", results = "%r";
  for (int i = 0; i < 200000; ++i) {
    attributes += ", a" + std::to_string(i) + "=1";
    results += ", %" + std::to_string(i);
  }
  EXPECT_EQ(message_of(attributes + "}"), "an op has more than 64 attributes: line 2, column 451");
  EXPECT_EQ(message_of(results + ", %7 = exp(%0)"), "value '%7' is defined twice: line 1, column " + std::to_string(results.size() + 3));
}

TEST(Text, LooseFormsRead) {
  const char* loose =
      "\n\n// a comment\n;;in %w variable \"w\" f32[4] // shape\r\n  in %x f32[ 2 , 4 ];%sum=add(%x,\n%w)\n out %sum ; out gradient \"w\" "
      "%w";
  EXPECT_EQ(print(parse_graph(loose)),
            "in %0 variable \"w\" f32[4]\nin %1 f32[2,4]\n%2:f32[2,4] = add(%1, %0)\nout %2\nout gradient \"w\" %0\n");
}

TEST(Text, InputsAreNumberedFirst) {
  EXPECT_EQ(print(parse_graph("in %a f32[]\n%b = exp(%a)\nin %c f32[]\n%d = add(%b, %c)\nout %d")),
            "in %0 f32[]\nin %1 f32[]\n%2:f32[] = exp(%0)\n%3:f32[] = add(%2, %1)\nout %3\n");
}

TEST(Text, BodiesReadBack) {
  const char* body =
      "in %0 f32[2,4]\nin %1 f32[4]\n%2:f32[2,4], %3:f32[2,4] = fused(%0, %1) {body={in %0 f32[2,4]; in %1 f32[4]; "
      "%2:f32[2,4] = add(%0, %1); %3:f32[] = constant() {value=2.0}; %4:f32[2,4] = multiply(%2, %3); out %2; out %4}}\nout %3\n";
  EXPECT_EQ(print(parse_graph(body)), body);
  std::string lines = "in %0 f32[2]\n%1 = fused(%0) {body={\n  in %0 f32[2] // the operand\n  %1 = exp(%0)\n  out %1\n}} @update\nout %1\n";
  EXPECT_EQ(print(parse_graph(lines)),
            "in %0 f32[2]\n%1:f32[2] = fused(%0) {body={in %0 f32[2]; %1:f32[2] = exp(%0); out %1}} @update\nout %1\n");
}

// Every double survives, bit for bit, and stays a double.
TEST(Text, FloatsReadBackBitEqual) {
  unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  using Limits = std::numeric_limits<double>;
  std::vector<double> values = {0.0,
                                -0.0,
                                1,
                                -1,
                                1e300,
                                0.1,
                                1e22,
                                123456789,
                                Limits::min(),
                                Limits::denorm_min(),
                                Limits::max(),
                                Limits::infinity(),
                                -Limits::infinity(),
                                Limits::quiet_NaN(),
                                -Limits::quiet_NaN()};
  for (int i = 0; i < 2000; ++i) values.push_back(std::bit_cast<double>(random()));
  const OpDef* constant = find_op("constant");
  ASSERT_NE(constant, nullptr);
  for (double value : values) {
    Graph graph;
    graph.append({.def = constant, .attrs = {{"value", value}}});
    std::string text = print(graph);
    Graph again = parse_graph(text);
    ASSERT_TRUE(std::holds_alternative<double>(again.ops[0].attrs.begin()->second)) << text;
    ASSERT_EQ(std::bit_cast<uint64_t>(again.ops[0].attrs.number("value")), std::bit_cast<uint64_t>(value)) << text;
  }
}

TEST(Text, StringsReadBack) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  Graph graph;
  graph.add_input(Role::kVariable, all, {DType::kF32, {3}});
  EXPECT_EQ(parse_graph(print(graph)).inputs[0].name, all);
}

TEST(Text, ErrorsNameLineAndColumn) {
  EXPECT_EQ(message_of("in %0 f32[2]\n%1 = ad(%0, %0)"), "there is no op 'ad': line 2, column 6; did you mean 'add'?");
  EXPECT_EQ(message_of("in %0 f32[2]\n\n   %1 = exp(%7)"), "value '%7' is not defined: line 3, column 13; a value stands above its uses");
  EXPECT_EQ(message_of("in %0 f32[2]\n%1:f32[3] = exp(%0)"), "value '%1' is f32[2], not f32[3]: line 2, column 1");
  EXPECT_EQ(message_of("in %0 f32[2]\nin %0 f32[2]"), "value '%0' is defined twice: line 2, column 4");
  EXPECT_EQ(message_of("in %0 f32[2]\n%1, %1 = exp(%0)"), "value '%1' is defined twice: line 2, column 5");
  EXPECT_EQ(message_of("in %0 f32[2]\n%1, %2 = exp(%0)"), "op 'exp' has 1 results, not 2: line 2, column 10");
  EXPECT_EQ(message_of("in %0 f32[2]\n%1 = add(%0)"), "op 'add' takes 2 operands, not 1: line 2, column 6 (add)");
  EXPECT_EQ(message_of("in %0 f32[2] ('data',)"), "a sharding needs a mesh: line 1, column 14; start with: graph NAME mesh {'data': 2}");
  EXPECT_EQ(message_of("graph g mesh {'data': 2}\nin %0 f32[2] ('dat',)"),
            "the mesh {'data': 2} has no axis 'dat': line 2, column 15; did you mean 'data'?");
  EXPECT_EQ(message_of("graph g mesh {'data': 2}\nin %0 f32[2] (None, None)"), "a sharding of f32[2] needs 1 entries: line 2, column 14");
  EXPECT_EQ(message_of("graph g mesh {'data': 2}\nin %0 f32[2] ('data',)+sum('data')"), "axis 'data' appears twice: line 2, column 28");
  EXPECT_EQ(message_of("graph g mesh {'data': 0}"),
            "axis 'data' has size 0: mesh (0,) with axes ('data',); give a size of at least 1: line 1, column 14");
  EXPECT_EQ(message_of("inn %0 f32[2]"),
            "'inn' starts no statement: line 1, column 1; a line is: graph NAME, in %0 ..., %1 = op(...) or out %1");
  EXPECT_EQ(message_of("in %0 varable \"w\" f32[2]"), "'varable' is no role of an input: line 1, column 7; did you mean 'variable'?");
  EXPECT_EQ(message_of("in %0 f32[2] f32"), "expected the end of the line before 'f32': line 1, column 14");
  EXPECT_EQ(message_of("in %0 data \"x"), "a quote is not closed: line 1, column 12");
  EXPECT_EQ(message_of("%0 = constant() {value=1.0, valu=1.0}"),
            "op 'constant' has no attribute 'valu': line 1, column 6 (constant); did you mean 'value'?");
  EXPECT_EQ(message_of("%0 = constant()"), "op 'constant' needs the attribute 'value': line 1, column 6 (constant)");
  EXPECT_EQ(message_of("%0 = constant() {value=\"a\"}"),
            "attribute 'value' of op 'constant' has to be a number: line 1, column 6 (constant)");
  EXPECT_EQ(message_of("in %0 variable \"w\" f32[2]\nin %1 f32[3]\nout variable \"w\" %1"),
            "output 'w' is f32[3] but the input it replaces is f32[2]: line 3, column 5");
}

TEST(Text, AbsurdSizesAreErrors) {
  EXPECT_EQ(message_of("in %0 f32[4611686018427387904,4611686018427387904]"),
            "shape (4611686018427387904, 4611686018427387904) has more than 2^56 elements: line 1, column 10");
  EXPECT_EQ(message_of("in %0 f32[99999999999999999999]"), "size '99999999999999999999' is too large: line 1, column 11");
  EXPECT_EQ(message_of("in %0 f32[-1]"), "shape (-1,) has a negative size: line 1, column 10");
  EXPECT_EQ(message_of("in %0 f32[1,1,1,1,1,1,1,1,1]"), "a shape has more than 8 dims: line 1, column 10");
  EXPECT_EQ(message_of("in %0 f32[268435456,1]\nin %1 f32[1,1073741824]\n%2 = add(%0, %1)"),
            "shape (268435456, 1073741824) has more than 2^56 elements: line 3, column 6 (add); give a smaller shape");
  EXPECT_NE(message_of("graph mesh {'x': 1000000000000}").find("more than 65536 devices"), std::string::npos);
  EXPECT_NE(message_of("graph mesh {'x': 2, 'x': 2}").find("axis 'x' is named twice"), std::string::npos);
}

// Deep, long and endless texts end in an Error in time linear in their size.
TEST(Text, HostileTextsEndQuickly) {
  auto start = std::chrono::steady_clock::now();
  const int n = 200000;
  auto repeat = [](const std::string& piece, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += piece;
    return text;
  };
  for (std::string open : {"(", "{", "[", "%", "\"", "'", ";", "=", "\\", "\n", "//", "in ", "out ", "graph ", "%0=", "-"})
    for (std::string begin :
         {"", "in %0 f32[2]\n%1 = exp(", "in %0 f32[2]\n%1 = fused(%0) {body=", "graph mesh {'x': 2}\nin %0 f32[2] ("}) {
      if (begin.empty() && (open == ";" || open == "\n" || open == "//")) continue;  // an empty graph
      EXPECT_NE(message_of(begin + repeat(open, n)), "no error") << begin << open;
    }
  EXPECT_EQ(message_of("in %0 f32[2]\n" + repeat("%0 = fused(%0) {body={in %0 f32[2]\n", n)),
            "value '%0' is defined twice: line 2, column 1");
  EXPECT_EQ(message_of(repeat("%1 = fused(%0) {body={", n)).substr(0, 27), "value '%0' is not defined: ");
  EXPECT_EQ(message_of(repeat("in %0 f32[2]\n%1 = fused(%0) {body={", n)).substr(0, 45), "bodies stand in bodies more than 8 deep: line");
  EXPECT_NE(message_of("%0 = " + std::string(n, 'a') + "()"), "no error");
  EXPECT_NE(message_of("in %0 " + std::string(n, 'a')), "no error");
  EXPECT_NE(message_of("%0 = constant() {value=[" + repeat("1,", n) + "1]}"), "no error");
  EXPECT_NE(message_of("in %x f32[]\n%0 = broadcast(%x) {dims=[], shape=[" + repeat("1,", n) + "1]}"), "no error");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

// Every prefix of a good text, and every text with one character changed, gives a graph or an Error.
TEST(Text, EveryPrefixAndEveryChangedCharacter) {
  const std::string text =
      std::string(kStep) + "%8:f32[8,64] = fused(%4) {body={in %0 f32[8,64]; %1:f32[8,64] = exp(%0); out %1}} ('data', None)\n";
  ASSERT_EQ(message_of(text), "no error");
  int errors = 0;
  for (size_t n = 0; n < text.size(); ++n) errors += message_of(text.substr(0, n)) != "no error";
  EXPECT_GT(errors, static_cast<int>(text.size()) - 60);  // whole lines, and lines with optional ends, are graphs
  for (size_t at = 0; at < text.size(); ++at)
    for (char c : std::string("0%\"'(){}[];,=\n\\a-9\x7f\xff") + '\0') {
      std::string changed = text;
      changed[at] = c;
      try {
        Graph graph = parse_graph(changed);
        EXPECT_EQ(print(parse_graph(print(graph))), print(graph));
      } catch (const Error&) {
      }
    }
}

// A program of one op for each sample of each op, in text.
std::vector<std::string> sample_programs() {
  std::vector<std::string> programs;
  for (const OpDef* def : all_ops()) {
    std::vector<OpSample> samples = def->samples;
    if (def->more_samples != nullptr)
      for (OpSample& sample : def->more_samples()) samples.push_back(std::move(sample));
    for (const OpSample& sample : samples) {
      Graph graph;
      Op op{.def = def, .attrs = sample.attrs};
      for (size_t i = 0; i < sample.operands.size(); ++i) {
        DType dtype = i < def->operand_dtypes.size() ? def->operand_dtypes[i] : DType::kF32;
        op.operands.push_back(graph.add_input(Role::kData, "x" + std::to_string(i), {dtype, sample.operands[i]}));
      }
      for (ValueId id : std::vector<ValueId>(graph.append(std::move(op)).results))
        graph.add_output(Role::kResult, "y" + std::to_string(id), id);
      programs.push_back(print(graph));
    }
  }
  return programs;
}

TEST(Text, EverySampleOfEveryOpReadsBack) {
  std::vector<std::string> programs = sample_programs();
  EXPECT_GT(programs.size(), 100u);
  for (const std::string& text : programs) EXPECT_EQ(print(parse_graph(text)), text);
}

// Numbers, words and punctuation of good programs changed at random: no rule of any op crashes on what it did not expect.
TEST(Text, DamagedProgramsEndInAGraphOrAnError) {
  unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::string> pieces = {"0",
                                           "1",
                                           "-1",
                                           "7",
                                           "9",
                                           "2147483647",
                                           "4611686018427387904",
                                           "1e300",
                                           "nan",
                                           "\"\"",
                                           "\"mk\"",
                                           "[]",
                                           "[0]",
                                           "[0, 0]",
                                           "[-1]",
                                           "[1, 1, 1, 1, 1, 1, 1, 1]",
                                           "[1099511627776, 1048576]",
                                           "{}",
                                           "(",
                                           ")",
                                           "[",
                                           "]",
                                           ",",
                                           "->",
                                           "%0",
                                           "f32",
                                           "i32",
                                           "f32[]",
                                           "f32[0]",
                                           "f32[0,3]",
                                           "\n",
                                           ";",
                                           "",
                                           " ",
                                           "=",
                                           "in %9 f32[1]\n"};
  int graphs = 0, errors = 0;
  for (const std::string& text : sample_programs())
    for (int round = 0; round < 60; ++round) {
      std::string damaged = text;
      for (int cut = 1 + static_cast<int>(random() % 2); cut > 0; --cut) {
        size_t at = random() % (damaged.size() + 1), length = random() % 3 == 0 ? 0 : 1 + random() % 3;
        damaged.replace(at, std::min(length, damaged.size() - at), pieces[random() % pieces.size()]);
      }
      try {
        Graph graph = parse_graph(damaged);
        EXPECT_EQ(print(parse_graph(print(graph))), print(graph));
        ++graphs;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kUsage);
        ++errors;
      }
    }
  EXPECT_GT(graphs, 100);
  EXPECT_GT(errors, 1000);
}

}  // namespace
}  // namespace espalier
