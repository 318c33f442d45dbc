#include "espalier/data/open.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "espalier/base/nearest.h"
#include "espalier/data/npy.h"
#include "espalier/data/synthetic.h"

namespace espalier {
namespace {

const std::string kFashionMnist = "fashion-mnist", kSynthetic = "synthetic";
const std::string kFashionDirectory = "/usr/share/datasets/fashion-mnist";
constexpr int64_t kSyntheticSamples = 1024;

int64_t count_of(const DataRequest& request, FieldRole role) {
  return std::count_if(request.fields.begin(), request.fields.end(), [&](const FieldSpec& field) { return field.role == role; });
}

std::unique_ptr<Dataset> open_idx(const FileSystem& files, const std::string& directory, const DataRequest& request) {
  if (count_of(request, FieldRole::kInput) > 1 || count_of(request, FieldRole::kTarget) > 1)
    usage_error("IDX files feed one input and one output", fmt::format("'{}'", directory), "use a .npz with one array a name");
  std::vector<FieldSource> sources;
  for (const FieldSpec& field : request.fields) {
    IdxPart part = field.role == FieldRole::kInput ? IdxPart::kImages : IdxPart::kLabels;
    std::string path = find_idx(files, directory, request.split, part);
    if (path.empty())
      usage_error(fmt::format("no file '{}-{}-idx*'", request.split == DataSplit::kTrain ? "train" : "t10k",
                              part == IdxPart::kImages ? "images" : "labels"),
                  fmt::format("directory '{}'", directory), "give a directory of MNIST's IDX files, plain or .gz");
    sources.push_back({read_idx(files, path), fmt::format("'{}'", path)});
  }
  return make_dataset(request.fields, std::move(sources), request.samples.value_or(std::numeric_limits<int64_t>::max()));
}

std::string array_name(const NpzReader& npz, const FieldSpec& field, const DataRequest& request) {
  if (npz.contains(field.name) || count_of(request, field.role) > 1) return field.name;
  return field.role == FieldRole::kInput ? "x" : "y";
}

std::unique_ptr<Dataset> open_npz(const FileSystem& files, const std::string& path, const DataRequest& request) {
  NpzReader npz(files, path);
  std::vector<FieldSource> sources;
  for (const FieldSpec& field : request.fields) {
    std::string name = array_name(npz, field, request);
    sources.push_back({npz.read(name), npz.where(name)});
  }
  return make_dataset(request.fields, std::move(sources), request.samples.value_or(std::numeric_limits<int64_t>::max()));
}

void check_zip(const FileSystem& files, const std::string& path) {
  auto file = files.open(path);
  std::array<char, 6> start{};
  file->read_at(0, start.data(), std::min<int64_t>(file->size(), start.size()));
  std::string_view text(start.data(), start.size());
  if (text.starts_with("\x93NUMPY"))
    usage_error("a single array holds no inputs with targets", fmt::format("'{}'", path), "save both with numpy.savez(file, x=x, y=y)");
  if (!text.starts_with("PK"))
    usage_error("not a .npz file", fmt::format("'{}'", path), "give a .npz, a directory of IDX files, fashion-mnist or synthetic");
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const FileSystem& files, const std::string& name, const DataRequest& request) {
  if (request.fields.empty()) usage_error("no inputs to read samples for", fmt::format("data '{}'", name), "name at least one input");
  if (name == kSynthetic) return make_synthetic_dataset(request.fields, request.samples.value_or(kSyntheticSamples), request.seed);
  if (name == kFashionMnist) {
    if (files.kind(kFashionDirectory) != FileKind::kDirectory)
      usage_error("data set 'fashion-mnist' is not installed", fmt::format("'{}'", kFashionDirectory), "apt install dataset-fashion-mnist");
    return open_idx(files, kFashionDirectory, request);
  }
  switch (files.kind(name)) {
    case FileKind::kDirectory:
      return open_idx(files, name, request);
    case FileKind::kRegular:
      check_zip(files, name);
      return open_npz(files, name, request);
    case FileKind::kOther:
      usage_error("a pipe or a device cannot be read as data", fmt::format("'{}'", name), "save it as a .npz file first");
    case FileKind::kMissing:
      break;
  }
  std::string near = nearest(name, {kFashionMnist, kSynthetic});
  usage_error(
      fmt::format("no data set, file or directory '{}'", name), "--data",
      near.empty() ? "give fashion-mnist, synthetic, a .npz file or a directory of IDX files" : fmt::format("did you mean '{}'?", near));
}

bool has_test_split(const FileSystem& files, const std::string& name) {
  std::string directory = name == kFashionMnist ? kFashionDirectory : name;
  if (name == kSynthetic || files.kind(directory) != FileKind::kDirectory) return false;
  return !find_idx(files, directory, DataSplit::kTest, IdxPart::kImages).empty();
}

}  // namespace espalier
