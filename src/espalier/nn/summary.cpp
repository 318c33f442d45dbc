#include "espalier/nn/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "espalier/base/text.h"
#include "espalier/nn/model_def.h"

namespace espalier::nn {

namespace {

using Row = std::vector<std::string>;

int64_t count_of(const std::vector<Variable>& variables) {
  int64_t count = 0;
  for (const Variable& variable : variables) count += variable.type.shape.volume();
  return count;
}

// Characters, not bytes: names may be UTF-8.
size_t width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string line(const Row& row, const std::vector<size_t>& widths, size_t right_aligned) {
  std::string text;
  for (size_t i = 0; i < widths.size(); ++i) {
    std::string cell = i < row.size() ? row[i] : "";
    std::string space(widths[i] - width(cell), ' ');
    text += (i == 0 ? "" : "  ") + (i == right_aligned ? space + cell : cell + space);
  }
  return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
}

std::string table(const std::vector<Row>& rows, size_t right_aligned) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  size_t total = 2 * (widths.size() - 1);
  for (size_t w : widths) total += w;
  std::string rule, text;
  for (size_t i = 0; i < total; ++i) rule += "─";
  for (size_t i = 0; i < rows.size(); ++i) text += line(rows[i], widths, right_aligned) + (i == 0 ? rule + "\n" : "");
  return text + rule + "\n";
}

// The output of a layer's first call in this model; several are joined.
std::string output_shape(const ModelDef& model, const LayerDef& layer) {
  for (const auto& node : model.nodes) {
    if (node->layer.get() != &layer) continue;
    std::string text;
    for (const Dims& shape : node->outputs) text += (text.empty() ? "" : ", ") + batch_shape_text(shape);
    return text;
  }
  return "-";
}

// The layer and those within it, each once.
void list_inner(const LayerDef& layer, std::set<const LayerDef*>& seen, std::vector<const LayerDef*>& all) {
  if (!seen.insert(&layer).second) return;
  all.push_back(&layer);
  if (auto* model = dynamic_cast<const ModelDef*>(&layer))
    for (const auto& inner : model->layers) list_inner(*inner, seen, all);
}

std::vector<const LayerDef*> with_inner(const LayerDef& layer) {
  std::set<const LayerDef*> seen;
  std::vector<const LayerDef*> all;
  list_inner(layer, seen, all);
  return all;
}

}  // namespace

std::string summary(const Model& model, const std::vector<VariableColumn>& columns) {
  std::vector<Variable> variables = model.variables();
  LayerTable names = model.layer_table();
  std::map<std::string, std::vector<Variable>> of_layer;  // by layer path
  for (const Variable& variable : variables) of_layer[variable.layer].push_back(variable);

  Row head = {"Layer (type)", "Output shape", "Parameters"};
  for (const VariableColumn& column : columns) head.push_back(column.title);
  std::vector<Row> rows = {head};
  for (const Layer& layer : model.layers()) {
    std::vector<Variable> own;
    std::set<std::string> paths;
    for (const LayerDef* def : with_inner(layer.def()))
      if (const std::string& path = names.at(def).path; paths.insert(path).second && of_layer.contains(path))
        own.insert(own.end(), of_layer[path].begin(), of_layer[path].end());
    rows.push_back({fmt::format("{} ({})", names.at(&layer.def()).name, layer.class_name()), output_shape(model.definition(), layer.def()),
                    format_count(count_of(own))});
    if (columns.empty()) continue;
    for (const Variable& variable : own) {
      Row row = {"  " + variable.path, "  " + to_string(variable.type.shape), format_count(variable.type.shape.volume())};
      for (const VariableColumn& column : columns) row.push_back(column.text(variable));
      rows.push_back(row);
    }
  }
  int64_t trained = 0, bytes = 0;
  for (const Variable& variable : variables) {
    trained += variable.trainable ? variable.type.shape.volume() : 0;
    bytes += variable.type.bytes();
  }
  int64_t all = count_of(variables);
  return fmt::format("Model \"{}\"\n{}{} parameters ({}), {} trained, {} not\n", model.name(), table(rows, 2), format_count(all),
                     format_bytes(bytes), format_count(trained), format_count(all - trained));
}

}  // namespace espalier::nn
