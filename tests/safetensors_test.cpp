// Uses: checkpoint
// safetensors against a file that Python wrote (data/make_data.py), against damaged ones, and on a full disk.
#include "espalier/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <thread>

#include "expect_error.h"
#include "faulty_file_system.h"
#include "scratch.h"
#include "texts.h"

namespace espalier {
namespace {

const std::string kTypes = ESPALIER_TEST_DIR "/data/types.safetensors";

Box whole(const Dims& shape) { return {Dims(shape.rank(), 0), shape}; }

float ramp(NumberType type, int64_t i) {  // element i of every array of make_data.py
  int64_t raw = 37 * i % 101;
  if (type == NumberType::kBool) return i % 3 == 0 ? 1.f : 0.f;
  if (type == NumberType::kU8 || type == NumberType::kU64) return static_cast<float>(raw);
  return is_integer(type) ? static_cast<float>(raw - 50) : static_cast<float>(raw - 50) / 4;
}

template <class T = float>
std::vector<T> read(const SafetensorsReader& reader, const std::string& name, const Box& box) {
  std::vector<T> out(static_cast<size_t>(box.shape.volume()));
  reader.read(name, box, out.data());
  return out;
}

// A file from its parts; the length in front may lie.
std::string file_of(const std::string& header, size_t data_bytes, int64_t length = -1) {
  uint64_t claimed = length < 0 ? header.size() : static_cast<uint64_t>(length);
  return std::string(reinterpret_cast<const char*>(&claimed), 8) + header + std::string(data_bytes, '\0');
}

TEST(Reader, EveryTypeAsPythonWroteIt) {
  SafetensorsReader reader(local_files(), kTypes);
  using enum NumberType;
  for (const auto& [name, type] : std::map<std::string, NumberType>{{"f64", kF64},
                                                                    {"f16", kF16},
                                                                    {"bf16", kBF16},
                                                                    {"i32", kI32},
                                                                    {"i64", kI64},
                                                                    {"i16", kI16},
                                                                    {"i8", kI8},
                                                                    {"u8", kU8},
                                                                    {"u64", kU64},
                                                                    {"bool", kBool}}) {
    ASSERT_NE(reader.find(name), nullptr) << name;
    EXPECT_EQ(*reader.find(name), (TensorSpec{name, type, {3, 4}}));
    std::vector<float> values = read(reader, name, whole({3, 4}));
    for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(values[static_cast<size_t>(i)], ramp(type, i)) << name;
    if (!is_integer(type)) continue;
    std::vector<int32_t> integers = read<int32_t>(reader, name, whole({3, 4}));
    for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(integers[static_cast<size_t>(i)], static_cast<int32_t>(ramp(type, i))) << name;
  }
  EXPECT_EQ(read(reader, "scalar", {}), std::vector<float>{2.5});
  EXPECT_EQ(read(reader, "empty", whole({0, 3})), std::vector<float>{});
  EXPECT_EQ(read(reader, "large", whole({1}))[0], 0x1p40f);
  EXPECT_EQ(reader.tensors().size(), 15u);
  EXPECT_EQ(reader.tensors().front().name, "z/f32");
  EXPECT_EQ(reader.metadata(), (std::map<std::string, std::string>{{"format", "np"}, {"who", "make_data.py"}}));
}

TEST(Reader, RefusesFloatsAndLargeNumbersAsIntegers) {
  SafetensorsReader reader(local_files(), kTypes);
  expect_error(ErrorKind::kWeights, {"type f32 where integers", "'z/f32'"}, [&] { read<int32_t>(reader, "z/f32", whole({7, 5})); });
  expect_error(ErrorKind::kWeights, {"does not fit 32 bits", "'large'"}, [&] { read<int32_t>(reader, "large", whole({1})); });
}

TEST(Reader, EveryBoxOfATensor) {
  SafetensorsReader reader(local_files(), kTypes);
  for (int64_t i0 = 0; i0 <= 3; ++i0)
    for (int64_t i1 = i0; i1 <= 3; ++i1)
      for (int64_t j0 = 0; j0 <= 4; ++j0)
        for (int64_t j1 = j0; j1 <= 4; ++j1)
          for (int64_t k0 = 0; k0 <= 5; ++k0)
            for (int64_t k1 = k0; k1 <= 5; ++k1) {
              std::vector<float> expected;
              for (int64_t i = i0; i < i1; ++i)
                for (int64_t j = j0; j < j1; ++j)
                  for (int64_t k = k0; k < k1; ++k) expected.push_back(ramp(NumberType::kF32, (i * 4 + j) * 5 + k));
              ASSERT_EQ(read(reader, "cube", {{i0, j0, k0}, {i1 - i0, j1 - j0, k1 - k0}}), expected);
            }
  expect_error(ErrorKind::kWeights, {"is not within shape (3, 4, 5)", "'cube'"}, [&] { read(reader, "cube", {{1, 0, 0}, {3, 4, 5}}); });
  expect_error(ErrorKind::kWeights, {"is not within"}, [&] { read(reader, "cube", {{0, 0}, {1, 1}}); });
  expect_error(ErrorKind::kWeights, {"no tensor 'cub'", "did you mean 'cube'?"}, [&] { read(reader, "cub", {}); });
}

// Reads follow from the layout: rows are one call, columns a few large ones, and a strip of a wide matrix does not fetch the rest.
TEST(Reader, ReadsFewAndLarge) {
  Scratch scratch;
  std::string path = scratch / "w";
  constexpr int64_t kRows = 600, kColumns = 512, kWide = 40'000;
  std::vector<float> values(kRows * kColumns), wide(16 * kWide);
  std::iota(values.begin(), values.end(), 0.f);
  std::iota(wide.begin(), wide.end(), 0.f);
  {
    SafetensorsWriter writer(local_files(), path, {{"w", NumberType::kF32, {kRows, kColumns}}, {"wide", NumberType::kF32, {16, kWide}}});
    writer.write("w", whole({kRows, kColumns}), values.data());
    writer.write("wide", whole({16, kWide}), wide.data());
    writer.commit();
  }
  FaultyFileSystem files;
  SafetensorsReader reader(files, path);
  int64_t calls = files.calls(FileCall::kRead), bytes = files.bytes_read();
  auto cost = [&] {
    auto result = std::pair(files.calls(FileCall::kRead) - calls, files.bytes_read() - bytes);
    calls += result.first, bytes += result.second;
    return result;
  };
  std::vector<float> rows = read(reader, "w", {{150, 0}, {150, kColumns}});
  EXPECT_EQ(rows[5], 150 * kColumns + 5);
  EXPECT_EQ(cost(), (std::pair<int64_t, int64_t>(1, 150 * kColumns * 4)));
  std::vector<float> columns = read(reader, "w", {{0, 128}, {kRows, 128}});
  for (int64_t i = 0; i < kRows * 128; ++i)
    ASSERT_EQ(columns[static_cast<size_t>(i)], static_cast<float>(i / 128 * kColumns + 128 + i % 128));
  auto [column_calls, column_bytes] = cost();
  EXPECT_LE(column_calls, 2);
  EXPECT_LE(column_bytes, kRows * kColumns * 4);
  std::vector<float> strip = read(reader, "wide", {{0, 10'000}, {16, 10'000}});
  for (int64_t i = 0; i < 160'000; ++i)
    ASSERT_EQ(strip[static_cast<size_t>(i)], static_cast<float>(i / 10'000 * kWide + 10'000 + i % 10'000));
  EXPECT_EQ(cost(), (std::pair<int64_t, int64_t>(16, 160'000 * 4)));
}

TEST(Reader, RefusesWhatIsNotTheFormat) {
  FaultyFileSystem files;
  auto bad = [&](const std::string& content, std::vector<std::string> words) {
    files.hold("bad", content);
    words.push_back("'bad'");
    expect_error(ErrorKind::kWeights, words, [&] { SafetensorsReader(files, "bad"); });
  };
  auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return "{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
  };
  std::string good = entry("\"F32\"", "[2]", "[0,8]");
  files.hold("bad", file_of("{\"a\":" + good + "}   ", 8));
  SafetensorsReader(files, "bad");
  bad("", {"0 bytes are too few"});
  bad("\x10", {"1 bytes are too few"});
  bad(file_of("{}", 0, 3), {"claims 3 bytes, more than the file has"});
  bad(file_of("{}", 0, 100'000'001), {"claims 100000001 bytes, more than the format's"});
  bad(file_of("{}", 0, INT64_MAX), {"more than the format's"});
  bad(file_of("", 0), {"not a JSON object"});
  bad(file_of("[]", 0), {"not a JSON object"});
  bad(file_of("{\"a\":", 0), {"not JSON"});
  bad(file_of("{\"\xff\":1}", 0), {"not JSON"});
  bad(file_of("{\"a\":1}", 0), {"'a'", "not an object"});
  bad(file_of("{\"a\":[[[[[1]]]]]}", 0), {"nested too deep"});
  bad(file_of("{\"a\":" + std::string(100'000, '['), 0), {"nested too deep"});
  bad(file_of("{\"a\":" + good + ",\"a\":" + good + "}", 8), {"names 'a' twice"});
  bad(file_of("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8), {"names 'dtype' twice"});
  bad(file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8), {"'data_offsets' is missing", "'a'"});
  bad(file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", 8), {"unexpected key 'x'"});
  bad(file_of("{\"a\":" + entry("\"F31\"", "[2]", "[0,8]") + "}", 8), {"dtype \"F31\" is not known", "known: F32"});
  bad(file_of("{\"a\":" + entry("4", "[2]", "[0,8]") + "}", 8), {"dtype 4 is not known"});
  bad(file_of("{\"a\":" + entry("\"F32\"", "[-2]", "[0,8]") + "}", 8), {"'-2', which is not a size"});
  bad(file_of("{\"a\":" + entry("\"F32\"", "[2.0]", "[0,8]") + "}", 8), {"'2.0', which is not a size"});
  bad(file_of("{\"a\":" + entry("\"F32\"", "2", "[0,8]") + "}", 8), {"'shape' is not a list"});
  bad(file_of("{\"a\":" + entry("\"F32\"", "[1,1,1,1,1,1,1,1,2]", "[0,8]") + "}", 8), {"9 dims"});
  bad(file_of("{\"a\":" + entry("\"F32\"", "[4294967296,4294967296]", "[0,8]") + "}", 8), {"too large"});
  bad(file_of("{\"a\":" + entry("\"F64\"", "[2305843009213693952]", "[0,8]") + "}", 8), {"too large"});
  bad(file_of("{\"a\":" + entry("\"F32\"", "[0,2305843009213693952,2305843009213693952]", "[0,0]") + "}", 0), {"too large"});
  bad(file_of("{\"a\":" + entry("\"F32\"", "[3]", "[0,8]") + "}", 8), {"8 bytes for shape (3,) of f32, which takes 12"});
  bad(file_of("{\"a\":" + entry("\"F32\"", "[2]", "[0,16]") + "}", 8), {"bytes 0 to 16 lie outside"});
  bad(file_of("{\"a\":" + entry("\"F32\"", "[2]", "[8,0]") + "}", 8), {"not a begin and an end"});
  bad(file_of("{\"a\":" + entry("\"F32\"", "[2]", "[0,8,8]") + "}", 8), {"not a begin and an end"});
  bad(file_of("{\"a\":" + good + ",\"b\":" + good + "}", 8), {"overlap"});
  bad(file_of("{\"a\":" + good + ",\"b\":" + entry("\"F32\"", "[2]", "[4,12]") + "}", 12), {"overlap"});
  bad(file_of("{\"a\":" + good + ",\"b\":" + entry("\"F32\"", "[2]", "[12,20]") + "}", 20),
      {"4 bytes before it belong to no tensor", "'b'"});
  bad(file_of("{\"a\":" + good + "}", 9), {"1 bytes at the end"});
  bad(file_of("{\"__metadata__\":{\"a\":1}}", 0), {"entry 'a' is not a string"});
  bad(file_of("{\"__metadata__\":1}", 0), {"'__metadata__' is not an object"});
}

TEST(Reader, RefusesWhatIsNotThere) {
  Scratch scratch;
  expect_error(ErrorKind::kWeights, {"no weights file", "/none'"}, [&] { SafetensorsReader(local_files(), scratch / "none"); });
  expect_error(ErrorKind::kWeights, {"a directory"}, [&] { SafetensorsReader(local_files(), scratch.path()); });
  FaultyFileSystem files;
  SafetensorsReader reader(files, kTypes);
  files.fail(FileCall::kRead, 1, EIO);
  expect_error(ErrorKind::kStorage, {"Input/output error"}, [&] { read(reader, "f64", whole({3, 4})); });
}

// Whatever bytes a file holds: tensors within the file, or an error of the weights.
TEST(Reader, SurvivesEveryDamage) {
  constexpr unsigned kSeed = 7;
  RecordProperty("seed", kSeed);
  std::mt19937 random(kSeed);
  FaultyFileSystem files;
  std::string intact = content_of(kTypes);
  int refused = 0;
  auto attempt = [&](const std::string& content) {
    files.hold("damaged", content);
    try {
      SafetensorsReader reader(files, "damaged");
      for (const TensorSpec& tensor : reader.tensors()) {
        ASSERT_LE(tensor.shape.volume(), static_cast<int64_t>(content.size()));
        read(reader, tensor.name, whole(tensor.shape));
      }
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::kWeights) << error.what() << " (seed " << kSeed << ")";
      ++refused;
    }
  };
  for (size_t size = 0; size < intact.size(); ++size) attempt(intact.substr(0, size));
  EXPECT_EQ(refused, static_cast<int>(intact.size()));
  size_t header = intact.find("}}") + 2;
  for (int i = 0; i < 5000; ++i) {
    std::string flipped = intact;
    for (int n = 0; n <= i % 3; ++n) flipped[random() % header] = "0123456789[]{},:\" \xff"[random() % 20];
    attempt(flipped);
  }
  EXPECT_GT(refused, static_cast<int>(intact.size()) + 2500);
}

TEST(Names, MissingUnexpectedAndMisshapenAreNamed) {
  Scratch scratch;
  std::vector<TensorSpec> model = {{"net/dense/kernel", NumberType::kF32, {4, 3}}, {"net/dense/bias", NumberType::kF32, {3}}};
  std::vector<float> zeros(12);
  auto saved = [&](const std::vector<TensorSpec>& tensors) {
    SafetensorsWriter writer(local_files(), scratch / "w", tensors);
    for (const TensorSpec& tensor : tensors) writer.write(tensor.name, whole(tensor.shape), zeros.data());
    writer.commit();
    return SafetensorsReader(local_files(), scratch / "w");
  };
  saved(model).check_names(model);
  auto refused = [&](const std::vector<TensorSpec>& tensors, std::vector<std::string> words) {
    words.push_back("/w'");
    expect_error(ErrorKind::kWeights, words, [&] { saved(tensors).check_names(model); });
  };
  refused({{"net/dens/kernel", NumberType::kF32, {4, 3}}, model[1]},
          {"no tensor for the model's variable 'net/dense/kernel'", "did you mean 'net/dens/kernel'?"});
  refused({}, {"no tensor for the model's variable 'net/dense/kernel' (and 1 more)", "another model"});
  refused({model[0], model[1], {"extra", NumberType::kF32, {2}}}, {"tensor 'extra' is no variable of the model, which has 2"});
  refused({{"net/dense/kernel", NumberType::kF32, {3, 4}}, model[1]},
          {"shape (3, 4) where the model's variable has (4, 3)", "'net/dense/kernel'"});
}

TEST(Writer, PartsInAnyOrderGiveTheFormat) {
  Scratch scratch;
  std::vector<TensorSpec> specs = {{"b/w", NumberType::kF32, {5, 6}},
                                   {"a", NumberType::kF32, {}},
                                   {"none", NumberType::kF32, {0, 2}},
                                   {"n", NumberType::kI64, {1}},
                                   {"i", NumberType::kI32, {3}}};
  std::vector<float> w(30);
  std::iota(w.begin(), w.end(), 1.f);
  float a = 7;
  int64_t n = int64_t{1} << 40;
  int32_t i[3] = {-1, 2, 3};
  SafetensorsWriter writer(local_files(), scratch / "w", specs, {{"step", "3"}});
  writer.write("n", whole({1}), &n);
  writer.write("i", whole({3}), i);
  std::vector<std::thread> threads;  // four uneven shards, one a thread
  for (int part = 0; part < 4; ++part)
    threads.emplace_back([&, part] {
      Range columns = espalier::part(6, 4, part);
      std::vector<float> shard;
      for (int64_t r = 0; r < 5; ++r)
        for (int64_t c = 0; c < columns.size; ++c) shard.push_back(w[static_cast<size_t>(r * 6 + columns.offset + c)]);
      writer.write("b/w", {{0, columns.offset}, {5, columns.size}}, shard.data());
    });
  for (std::thread& thread : threads) thread.join();
  writer.write("a", {}, &a);
  writer.commit();
  EXPECT_EQ(scratch.file_count(), 1u);
  // Taken apart by hand, as the format's page says.
  std::string raw = content_of(scratch / "w");
  uint64_t length = 0;
  std::memcpy(&length, raw.data(), 8);
  auto header = nlohmann::json::parse(raw.substr(8, length));
  EXPECT_EQ(header,
            nlohmann::json::parse(R"({"__metadata__": {"step": "3"}, "b/w": {"dtype": "F32", "shape": [5, 6], "data_offsets": [0, 120]},
    "a": {"dtype": "F32", "shape": [], "data_offsets": [120, 124]}, "none": {"dtype": "F32", "shape": [0, 2], "data_offsets": [124, 124]},
    "n": {"dtype": "I64", "shape": [1], "data_offsets": [124, 132]}, "i": {"dtype": "I32", "shape": [3], "data_offsets": [132, 144]}})"));
  EXPECT_EQ(length % 8, 0u);
  ASSERT_EQ(raw.size(), 8 + length + 144);
  EXPECT_EQ(std::memcmp(raw.data() + 8 + length, w.data(), 120), 0);
  EXPECT_EQ(std::memcmp(raw.data() + 8 + length + 132, i, 12), 0);
  SafetensorsReader reader(local_files(), scratch / "w");
  EXPECT_EQ(reader.tensors(), specs);
  EXPECT_EQ(read(reader, "b/w", {{2, 1}, {2, 3}}), (std::vector<float>{14, 15, 16, 20, 21, 22}));
  EXPECT_EQ(reader.metadata().at("step"), "3");
}

TEST(Writer, AFullDiskLeavesTheOldFile) {
  std::vector<float> values(1000, 1.f);
  std::vector<TensorSpec> specs = {{"w", NumberType::kF32, {1000}}};
  for (int64_t capacity : {0, 20, 100, 2000, 4000}) {
    Scratch scratch;
    FaultyFileSystem files;
    std::string path = scratch.write("w", "old");
    files.set_capacity(capacity);
    expect_error(ErrorKind::kStorage, {"No space left on device", "/w'", "free some space"}, [&] {
      SafetensorsWriter writer(files, path, specs);
      writer.write("w", {{500}, {500}}, values.data());
      writer.write("w", {{0}, {500}}, values.data());
      writer.commit();
    });
    EXPECT_EQ(content_of(path), "old") << capacity;
    EXPECT_EQ(scratch.file_count(), 1u) << capacity;
  }
}

TEST(Writer, RefusesNamesThatTheFormatCannotHold) {
  Scratch scratch;
  auto write = [&](const std::vector<TensorSpec>& specs) { SafetensorsWriter(local_files(), scratch / "w", specs); };
  TensorSpec a{"a", NumberType::kF32, {1}};
  expect_error(ErrorKind::kUsage, {"two tensors have one name", "'a'"}, [&] { write({a, a}); });
  expect_error(ErrorKind::kUsage, {"reserved"}, [&] { write({{"__metadata__", NumberType::kF32, {}}}); });
  expect_error(ErrorKind::kUsage, {"not UTF-8"}, [&] { write({{"\xff", NumberType::kF32, {}}}); });
  EXPECT_EQ(scratch.file_count(), 0u);
}

}  // namespace
}  // namespace espalier
