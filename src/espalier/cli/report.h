#pragma once
// The reports of --json, field by field as the README's "Reports" lists them. Each function gives the value of one field.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "espalier/nn/trainer.h"

namespace espalier::cli {

using Json = nlohmann::ordered_json;

Json mesh_json(const DeviceMesh& mesh);
// One entry a dim: null, "axis" or ["axis", "axis"].
Json layout_json(const TensorLayout& layout, int rank);
Json variables_json(const nn::Trainer& trainer);
Json batch_json(const Distribution& distribution, int64_t size);
// With the measured size of each arena when `allocated` is not empty.
Json memory_json(const nn::Trainer& trainer, const std::vector<int64_t>& allocated = {});
Json collectives_json(const std::vector<Collective>& collectives);
Json logs_json(const nn::Logs& logs);

// The layout of a variable as the user wrote it, which names axes of size 1 too; without a rule, what it is bound to.
TensorLayout layout_of(const nn::VariableReport& variable, const Distribution& distribution);

// One JSON object and a newline to standard output. Numbers read back as the same float; what is not finite is null.
void print_json(const Json& report);

}  // namespace espalier::cli
