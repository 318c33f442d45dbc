#include "espalier/cli/trace_file.h"

#include <fmt/format.h>

#include "espalier/cli/report.h"

namespace espalier::cli {
namespace {

std::string quoted(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

// Rows are numbered over all processes: Perfetto joins threads of one number.
int64_t process_of(int64_t device) { return device + 1; }
int64_t row_of(int64_t device, bool collective) { return 2 * device + (collective ? 2 : 1); }

std::string metadata(const char* what, int64_t device, int64_t row, const std::string& args) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", what, process_of(device), row, args);
}

// "cpu:3 (data=0, model=3)".
std::string device_text(const DeviceMesh& mesh, int64_t device) {
  std::string place;
  for (int axis = 0; axis < mesh.axis_count(); ++axis)
    place += fmt::format("{}{}={}", axis ? ", " : "", mesh.axis_names()[static_cast<size_t>(axis)], mesh.coordinate(device, axis));
  return fmt::format("{} ({})", mesh.devices()[static_cast<size_t>(device)], place);
}

// "add relu", of an op that stands for several.
std::string body_text(const Op& op) {
  std::string text;
  for (const AttrSpec& attr : op.def->attributes)
    if (attr.kind == AttrKind::kGraph)
      for (const Op& inner : op.attrs.graph(attr.name).ops) text += (text.empty() ? "" : " ") + inner.def->name;
  return text;
}

std::string args_of(const Graph& graph, const Op& op, int64_t device) {
  const Value& result = graph.value(op.results.front());
  const TensorType local = {result.type.dtype, local_shape(result.sharding, result.type.shape, *graph.mesh, device)};
  std::string args = fmt::format(R"("layer":{},"phase":"{}","result":{})", quoted(op.scope), to_string(op.phase), quoted(to_string(local)));
  if (const std::string body = body_text(op); !body.empty()) args += R"(,"body":)" + quoted(body);
  if (!op.reason.empty()) args += R"(,"reason":)" + quoted(op.reason);
  return args;
}

std::string microseconds(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

}  // namespace

TraceFile::TraceFile(const FileSystem& files, const std::string& path, const DeviceMesh& mesh) : file_(files, path) {
  put(R"({"displayTimeUnit":"ms","otherData":{"program":"espalier","mesh":)" + quoted(to_string(mesh)) + "},\"traceEvents\":[");
  for (int64_t device = 0; device < mesh.size(); ++device) {
    put((device ? ",\n" : "\n") + metadata("process_name", device, 0, R"("name":)" + quoted(device_text(mesh, device))));
    put(",\n" + metadata("process_sort_index", device, 0, fmt::format(R"("sort_index":{})", device)));
    for (bool collective : {false, true}) {
      const int64_t row = row_of(device, collective);
      put(",\n" + metadata("thread_name", device, row, collective ? R"("name":"communication")" : R"("name":"compute")"));
      put(",\n" + metadata("thread_sort_index", device, row, fmt::format(R"("sort_index":{})", row)));
    }
  }
}

const std::vector<TraceFile::OpText>& TraceFile::texts_of(const Compiled& program, int64_t device) {
  auto [at, fresh] = texts_.try_emplace({&program, program.device_class[static_cast<size_t>(device)]});
  if (fresh)
    for (const Op& op : program.graph.ops)
      at->second.push_back({quoted(op.def->name), args_of(program.graph, op, device), op.def->collective});
  return at->second;
}

void TraceFile::add(const nn::RunTrace& run) {
  // An output that could not take its state's place while it was computed.
  static const OpText copy = {"\"copy\"", R"("layer":"","phase":"update")"};
  for (const TraceEvent& event : run.events) {
    if (!origin_ns_) origin_ns_ = event.begin_ns;
    const OpText& op = event.op < 0 ? copy : texts_of(run.program, event.device)[static_cast<size_t>(event.op)];
    put(fmt::format(R"({}{{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{},"run":"{}","step":{},)"
                    R"("bytes":{},"worker":{}}}}})",
                    ",\n", op.name, op.collective ? "communication" : "compute", process_of(event.device),
                    row_of(event.device, op.collective), microseconds(event.begin_ns - *origin_ns_),
                    microseconds(event.end_ns - event.begin_ns), op.args, run.kind, run.step, event.bytes, event.worker));
  }
}

void TraceFile::commit() {
  put("\n]}\n");
  flush();
  file_.commit();
}

void TraceFile::put(const std::string& text) {
  buffer_ += text;
  if (buffer_.size() >= kTraceBuffer) flush();
}

void TraceFile::flush() {
  file_.write_at(written_, buffer_.data(), std::ssize(buffer_));
  written_ += std::ssize(buffer_);
  buffer_.clear();
}

}  // namespace espalier::cli
