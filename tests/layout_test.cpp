// Uses: mesh
// TensorLayout: written, printed, read back, compared; and its binding to a mesh and a shape.
#include <gtest/gtest.h>

#include <unordered_set>

#include "espalier/mesh/sharding.h"
#include "espalier/mesh/tensor_layout.h"
#include "expect_error.h"

namespace espalier {
namespace {

using std::nullopt;

TEST(Layout, PrintsAsPythonTuples) {
  EXPECT_EQ(to_string(TensorLayout{}), "()");
  EXPECT_EQ(to_string(TensorLayout{nullopt}), "(None,)");
  EXPECT_EQ(to_string(TensorLayout{"model"}), "('model',)");
  EXPECT_EQ(to_string(TensorLayout{nullopt, "model"}), "(None, 'model')");
  EXPECT_EQ(to_string(TensorLayout{{"data", "model"}, nullopt}), "(('data', 'model'), None)");
}

// Every layout of rank 0 to 3 over three axes, each axis used at most once: they print differently and read back equal.
void all_layouts(std::vector<DimAxes> dims, std::vector<std::string> left, int rank, std::vector<TensorLayout>* out) {
  if (static_cast<int>(dims.size()) == rank) return out->push_back(TensorLayout(dims));
  std::function<void(DimAxes, std::vector<std::string>)> grow = [&](DimAxes dim, std::vector<std::string> rest) {
    auto next = dims;
    next.push_back(dim);
    all_layouts(next, rest, rank, out);
    for (size_t i = 0; i < rest.size(); ++i) {
      auto longer = dim;
      auto fewer = rest;
      longer.names.push_back(rest[i]);
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      grow(longer, fewer);
    }
  };
  grow({}, left);
}

TEST(Layout, RoundTripOfAllLayouts) {
  std::vector<TensorLayout> layouts;
  for (int rank = 0; rank <= 3; ++rank) all_layouts({}, {"a", "b-1", "länge"}, rank, &layouts);
  EXPECT_GT(layouts.size(), 100u);
  std::unordered_set<TensorLayout> distinct;
  for (const TensorLayout& layout : layouts) {
    TensorLayout read = TensorLayout::parse(to_string(layout));
    EXPECT_EQ(read, layout) << to_string(layout);
    EXPECT_EQ(std::hash<TensorLayout>()(read), std::hash<TensorLayout>()(layout));
    EXPECT_TRUE(distinct.insert(layout).second) << to_string(layout);
  }
}

TEST(Layout, ParseIsLenientInForm) {
  EXPECT_EQ(TensorLayout::parse("('model')"), (TensorLayout{"model"}));
  EXPECT_EQ(TensorLayout::parse(" ( None ,\"model\" , ) "), (TensorLayout{nullopt, "model"}));
  EXPECT_EQ(TensorLayout::parse("(('data',), ())"), (TensorLayout{"data", nullopt}));
}

TEST(Layout, Equality) {
  EXPECT_EQ((TensorLayout{nullopt, "model"}), (TensorLayout{DimAxes(), {"model"}}));
  EXPECT_NE((TensorLayout{{"data", "model"}}), (TensorLayout{{"model", "data"}}));
  EXPECT_NE((TensorLayout{"model"}), (TensorLayout{"model", nullopt}));
}

TEST(Layout, AnAxisCutsOneDimOnly) {
  EXPECT_EQ(error_text([] {
              TensorLayout{"model", "model"};
            }),
            "axis 'model' appears twice: layout ('model', 'model'); an axis cuts one dim only; use another axis or None");
  EXPECT_EQ(error_text([] {
              TensorLayout{{"model", "model"}, nullopt};
            }),
            "axis 'model' appears twice: layout (('model', 'model'), None); an axis cuts one dim only; use another axis or None");
  EXPECT_EQ(error_text([] { TensorLayout{""}; }), "'' is no axis name: layout ('',); use letters, digits, '_', '-' or '.'");
}

TEST(Layout, ParseRefuses) {
  auto text = [](const std::string& layout) { return error_text([&] { TensorLayout::parse(layout); }); };
  auto refused = [](const std::string& layout, const std::string& problem, int at) {
    return "layout '" + layout + "' cannot be read: " + problem + " at position " + std::to_string(at) +
           "; write it as (None, 'model') or (('data', 'model'), None)";
  };
  EXPECT_EQ(text(""), refused("", "expected '('", 0));
  EXPECT_EQ(text("(model)"), refused("(model)", "expected None, a quoted axis name or a list of them", 1));
  EXPECT_EQ(text("(Nope)"), refused("(Nope)", "expected None", 1));
  EXPECT_EQ(text("('model"), refused("('model", "a quote is not closed", 1));
  EXPECT_EQ(text("(None 'model')"), refused("(None 'model')", "expected ',' or ')'", 6));
  EXPECT_EQ(text("(None) x"), refused("(None) x", "nothing may follow the ')'", 7));
  EXPECT_EQ(text("(('a'), "), refused("(('a'), ", "expected None, a quoted axis name or a list of them", 8));
  EXPECT_EQ(text(std::string("()\0", 3)).substr(0, 7), "layout ");
}

TEST(Bind, ShorterLeavesTrailingDimsWhole) {
  DeviceMesh mesh({2, 4}, {"data", "model"});
  Sharding sharding = espalier::bind({"model"}, {12, 6, 5}, mesh, "v");
  EXPECT_EQ(local_shape(sharding, {12, 6, 5}, mesh, 0), (Dims{3, 6, 5}));
  EXPECT_EQ(unbind(sharding, mesh), (TensorLayout{"model", nullopt, nullopt}));
  EXPECT_EQ(to_string(sharding, mesh), "('model', None, None)");
  sharding.pending = 1;
  EXPECT_EQ(to_string(sharding, mesh), "('model', None, None)+sum('data')");
}

TEST(Bind, RefusesRankAndAxis) {
  DeviceMesh mesh({2, 4}, {"data", "model"});
  EXPECT_EQ(error_text([&] { espalier::bind({"model"}, {}, mesh, "variable 'scale'"); }),
            "layout ('model',) of rank 1 is longer than the shape () of rank 0: variable 'scale'; give at most one entry a dim; missing "
            "trailing entries mean whole");
  EXPECT_EQ(error_text([&] { espalier::bind({"dat"}, {4}, mesh, "variable 'scale'"); }),
            "the mesh {'data': 2, 'model': 4} has no axis 'dat': variable 'scale'; did you mean 'data'?");
}

TEST(Bind, EqualMeaningIsEqualBytes) {
  DeviceMesh mesh({1, 2, 4}, {"one", "data", "model"});
  Sharding plain = espalier::bind({"data", "model"}, {8, 8}, mesh, "v");
  Sharding padded = espalier::bind({{"one", "data"}, "model"}, {8, 8}, mesh, "v");
  EXPECT_EQ(plain, padded);
  EXPECT_EQ(ShardingHash()(plain), ShardingHash()(padded));
  EXPECT_NE(plain, espalier::bind({"model", "data"}, {8, 8}, mesh, "v"));
  EXPECT_TRUE(espalier::bind({"one"}, {8, 8}, mesh, "v").replicated());
}

}  // namespace
}  // namespace espalier
