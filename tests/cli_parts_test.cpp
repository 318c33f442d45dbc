// Uses: cli
// Parts of the program that a run shows only in passing: what counts as a difference, texts for 80 columns, layout files, progress.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "espalier/cli/difference.h"
#include "espalier/cli/layout_file.h"
#include "espalier/cli/option_table.h"
#include "espalier/cli/output.h"
#include "espalier/cli/progress.h"
#include "espalier/cli/wrap.h"
#include "expect_error.h"

namespace espalier::cli {
namespace {

using Floats = std::vector<float>;

TEST(Difference, IsRelativeToTheLargestElementAndNamesTheWorst) {
  const Floats reference = {1, -4, 0, 2};
  EXPECT_EQ(largest_difference(reference, reference).relative, 0);
  Difference one = largest_difference(Floats{1, -4, 0.5, 2}, reference);
  EXPECT_EQ(one.relative, 0.125);
  EXPECT_EQ(one.index, 2);
  EXPECT_EQ(largest_difference(Floats{1, -4, 0.5, 2}, reference, 8).relative, 0.0625);
}

TEST(Difference, NothingThatIsNotANumberHides) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(largest_difference(Floats{1, nan}, Floats{1, 2}).relative));
  EXPECT_EQ(largest_difference(Floats{1, nan}, Floats{1, 2}).index, 1);
  EXPECT_TRUE(std::isinf(largest_difference(Floats{1, 2}, Floats{1, infinite}).relative));
  EXPECT_TRUE(std::isinf(largest_difference(Floats{1}, Floats{1, 2}).relative));
  EXPECT_TRUE(std::isinf(largest_difference(Floats{1e-30f}, Floats{0}).relative));
  EXPECT_EQ(largest_difference(Floats{nan, infinite}, Floats{nan, infinite}).relative, 0);
}

// A weight whose gradient is far above rounding may not differ by more than the tolerance; one whose gradient is rounding may.
TEST(Difference, SlackIsForWeightsWhoseGradientIsRounding) {
  const double tolerance = 1e-5;
  const nn::Adam adam(0.001);
  Floats slack;
  const Floats gradient = {0.5f, 1e-10f};
  add_slack(adam, gradient, 0.5, tolerance, &slack);
  const Floats reference = {0.1f, 0.1f};
  EXPECT_GT(weight_difference(Floats{0.1001f, 0.1f}, reference, slack).relative, tolerance);
  EXPECT_LT(weight_difference(Floats{0.1f, 0.1001f}, reference, slack).relative, tolerance);
  EXPECT_GT(weight_difference(Floats{0.1f, 0.11f}, reference, slack).relative, tolerance);  // by more than two updates: no rounding
  Floats plain;
  add_slack(nn::SGD(0.1), gradient, 0.5, tolerance, &plain);
  EXPECT_GT(weight_difference(Floats{0.1f, 0.1001f}, reference, plain).relative, tolerance);
}

TEST(Wrap, BreaksAtSpacesAndCountsCharacters) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "wörter ";
  std::string wrapped = wrap(text, 4);
  size_t begin = 0, lines = 0;
  while (begin < wrapped.size()) {
    size_t end = std::min(wrapped.find('\n', begin), wrapped.size());
    EXPECT_LE(columns_of(wrapped.substr(begin, end - begin)), kColumns - (lines == 0 ? 4 : 0));
    begin = end + 1;
    ++lines;
  }
  EXPECT_EQ(lines, 4u);  // 40 words of 6 and a space over 76 columns: 11 a line
}

TEST(Wrap, TablesStayWithinEightyColumns) {
  Table table({"name", "bytes", "why"}, {Align::kLeft, Align::kRight, Align::kLeft});
  table.add({std::string(100, 'n') + "/kernel", "12", "because " + std::string(30, 'x') + " and because of more than fits behind it"});
  table.add({"short", "1234567", "so"});
  std::string text = table.text();
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    EXPECT_LE(columns_of(text.substr(begin, end - begin)), kColumns) << text;
    begin = end + 1;
  }
  EXPECT_NE(text.find("…"), std::string::npos);
  EXPECT_NE(text.find("/kernel"), std::string::npos) << text;
}

TEST(LayoutFile, KeepsTheOrderOfKeysAndEveryFormOfEntry) {
  DeviceMesh mesh({2, 2}, {"data", "model"});
  LayoutMap map = read_layout(R"({"z": [null, "model"], "a": [["data", "model"]], "m": []})", "l.json", mesh);
  ASSERT_EQ(map.size(), 3u);
  EXPECT_EQ(map.rules()[0].key, "z");
  EXPECT_EQ(map.rules()[0].layout, (TensorLayout{std::nullopt, "model"}));
  EXPECT_EQ(map.rules()[1].layout, (TensorLayout{{"data", "model"}}));
  EXPECT_EQ(map.rules()[2].layout, TensorLayout());
}

TEST(LayoutFile, RefusesByKeyAndPlace) {
  DeviceMesh mesh(2, "model");
  auto refuse = [&](const std::string& text, const std::vector<std::string>& words) {
    expect_error(ErrorKind::kUsage, words, [&] { read_layout(text, "l.json", mesh); });
  };
  refuse("", {"'l.json', line 1, column 1"});
  refuse("{\"a\": [null],\n \"b\": [nul]}", {"'l.json', line 2, column 11"});
  refuse(R"({"a": [null], "b": [], "a": []})", {"key 'a' stands twice", "'l.json'"});
  refuse(R"({"a": {"b": 1}})", {"layout rule 'a' in 'l.json'"});
  refuse(R"({"a": [1e999]})", {"a number is too large", "layout file 'l.json'"});
  refuse("{\"a\": " + std::string(200000, '['), {"more than 16 brackets inside one another", "layout file 'l.json'"});
  refuse(R"({"a": [true]})", {"'true' is no entry", "entry 0 of layout rule 'a'"});
  refuse(R"({"a": [null, ["model", 3]]})", {"'3' is no axis name", "entry 1 of layout rule 'a'"});
  refuse(R"({"a": ["model", "model"]})", {"axis 'model' appears twice"});
  refuse(R"({"": []})", {"empty key"});
  refuse(R"({"a(": []})", {"broken regular expression", "position 1"});
  refuse("\"text\"", {"holds no object"});
}

TEST(Progress, FiguresAreShort) {
  EXPECT_EQ(rate_text(7), "7/s");
  EXPECT_EQ(rate_text(12'345), "12.3k/s");
  EXPECT_EQ(rate_text(2.5e6), "2.5M/s");
  EXPECT_EQ(seconds_text(0.2), "0:01");
  EXPECT_EQ(seconds_text(61), "1:01");
  EXPECT_EQ(seconds_text(3723), "1:02:03");
  EXPECT_EQ(seconds_text(INFINITY), "?");
  EXPECT_EQ(bar_text(0.5, 4), "━━╺─");
  EXPECT_EQ(bar_text(1, 3), "━━━");
  EXPECT_EQ(bar_text(2, 3), "━━━");
  EXPECT_EQ(logs_text({{"loss", 0.43216}, {"accuracy", 1}}), "loss 0.4322  accuracy 1.0000");
  EXPECT_EQ(logs_text({{"loss", -NAN}}), "loss nan");
}

TEST(Output, MessagesStayOnOneLine) {
  EXPECT_EQ(one_line("axis 'a\nb'; \x1b[31mred\t\x7f"), "axis 'a\\nb'; \\x1b[31mred\\x09\\x7f");
  EXPECT_EQ(one_line("дата ─"), "дата ─");
}

TEST(Help, EveryOptionSaysWhatItIs) {
  for (const OptionSpec& option : option_table()) {
    EXPECT_EQ(option.flag.rfind("--", 0), 0u);
    EXPECT_FALSE(option.help.empty()) << option.flag;
    EXPECT_FALSE(option.group.empty()) << option.flag;
  }
  for (const CommandSpec& command : command_table()) EXPECT_FALSE(command.examples.empty()) << command.name;
}

}  // namespace
}  // namespace espalier::cli
