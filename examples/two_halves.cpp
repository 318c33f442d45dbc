// A dense layer's two halves: its kernel and bias cut between cpu:0 and cpu:1.
#include <cstdio>

#include "espalier/mesh/drawing.h"
#include "espalier/mesh/layout_map.h"

using namespace espalier;

int main() {
  LayoutMap layouts(DeviceMesh({2}, {"model"}, {"cpu:0", "cpu:1"}));
  layouts.insert("sequential/dense/kernel", {std::nullopt, "model"});
  layouts.insert("sequential/dense/bias", {"model"});
  const VariableShape variables[] = {{"sequential/dense/kernel", {32, 64}}, {"sequential/dense/bias", {64}}};
  for (const ResolvedVariable& variable : layouts.resolve(variables).variables) {
    const Dims& shape = variable.path == variables[0].path ? variables[0].shape : variables[1].shape;
    std::printf("%s %s\n%s\n", variable.path.c_str(), named_sharding(variable.layout, layouts.mesh()).c_str(),
                draw_sharding(variable.sharding, shape, layouts.mesh()).c_str());
  }
}
