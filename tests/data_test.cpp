// Uses: data
// Readers of samples against files that numpy and Python wrote (data/make_data.py), and against damaged ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "espalier/data/npy.h"
#include "espalier/data/open.h"
#include "espalier/data/order.h"
#include "espalier/data/synthetic.h"
#include "expect_error.h"
#include "faulty_file_system.h"
#include "scratch.h"
#include "texts.h"

namespace espalier {
namespace {

const std::string kData = ESPALIER_TEST_DIR "/data/";

// Element i of every array of make_data.py.
double ramp(NumberType type, int64_t i) {
  int64_t raw = 37 * i % 101;
  switch (type) {
    case NumberType::kBool:
      return i % 3 == 0;
    case NumberType::kU8:
    case NumberType::kU16:
    case NumberType::kU32:
    case NumberType::kU64:
      return static_cast<double>(raw);
    case NumberType::kF16:
    case NumberType::kF32:
    case NumberType::kF64:
      return static_cast<double>(raw - 50) / 4;
    default:
      return static_cast<double>(raw - 50);
  }
}

void expect_ramp(const Array& array, NumberType type, const Dims& shape, const std::string& name) {
  ASSERT_EQ(array.type, type) << name;
  ASSERT_EQ(array.shape, shape) << name;
  std::vector<double> values(static_cast<size_t>(shape.volume()));
  convert(type, array.values.get(), shape.volume(), values.data());
  for (int64_t i = 0; i < shape.volume(); ++i) EXPECT_EQ(values[static_cast<size_t>(i)], ramp(type, i)) << name << " " << i;
}

FieldSpec input(const std::string& name, const Dims& shape) { return {name, FieldRole::kInput, shape}; }
FieldSpec label(const std::string& name, int64_t classes) { return {name, FieldRole::kTarget, {}, Values::kClass, classes}; }

template <class T = float>
std::vector<T> read(const Dataset& data, int field, const std::vector<int64_t>& samples) {
  std::vector<T> out(samples.size() * static_cast<size_t>(data.fields()[static_cast<size_t>(field)].shape.volume()));
  data.read(field, samples, out.data());
  return out;
}

TEST(Npz, EveryTypeByteOrderAndArrayOrder) {
  NpzReader npz(local_files(), kData + "types.npz");
  using enum NumberType;
  std::map<std::string, NumberType> types = {{"i1", kI8},      {"i2", kI16},     {"i4", kI32},     {"i8", kI64},     {"u1", kU8},
                                             {"u2", kU16},     {"u4", kU32},     {"u8", kU64},     {"f2", kF16},     {"f4", kF32},
                                             {"f8", kF64},     {"bool", kBool},  {"big_i2", kI16}, {"big_u4", kU32}, {"big_i8", kI64},
                                             {"big_f2", kF16}, {"big_f4", kF32}, {"big_f8", kF64}};
  for (const auto& [name, type] : types) expect_ramp(npz.read(name), type, {4, 3}, name);
  expect_ramp(npz.read("fortran"), kF64, {4, 3, 2}, "fortran");
  expect_ramp(npz.read("big_fortran"), kI32, {5, 7}, "big_fortran");
  EXPECT_EQ(npz.names().size(), types.size() + 2);
}

TEST(Npz, ReadsWhatWasWrittenToAPipe) {
  for (const char* name : {"stream_v2.npz", "stream_v3.npz"})
    expect_ramp(NpzReader(local_files(), kData + name).read("x"), NumberType::kF32, {5, 3}, name);
}

TEST(Npz, RefusesWhatIsNoNumberByName) {
  NpzReader npz(local_files(), kData + "strange.npz");
  expect_error(ErrorKind::kUsage, {"Python objects", "'|O'", "array 'objects' of '", "strange.npz'"}, [&] { npz.read("objects"); });
  expect_error(ErrorKind::kUsage, {"'<U1'", "array 'words'"}, [&] { npz.read("words"); });
  expect_error(ErrorKind::kUsage, {"structured", "array 'pairs'"}, [&] { npz.read("pairs"); });
  expect_error(ErrorKind::kUsage, {"'<c8'"}, [&] { npz.read("waves"); });
  expect_error(ErrorKind::kUsage, {"'<M8[D]'"}, [&] { npz.read("days"); });
  expect_error(ErrorKind::kUsage, {"no array 'wavs'", "did you mean 'waves'?"}, [&] { npz.read("wavs"); });
  EXPECT_EQ(npz.read("scalar").shape, Dims());
  EXPECT_EQ(npz.read("none").shape, (Dims{0, 3}));
}

TEST(Npz, FeedsXAndY) {
  auto data = open_dataset(local_files(), kData + "plain.npz", {{input("input_layer", {3}), label("dense", 3)}});
  ASSERT_EQ(data->size(), 5);
  std::vector<float> x = read(*data, 0, {4, 0, 4});
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(x[i], ramp(NumberType::kF32, static_cast<int64_t>(i < 3 || i >= 6 ? 12 + i % 3 : i - 3)));
  EXPECT_EQ(read<int32_t>(*data, 1, {4, 2, 1}), (std::vector<int32_t>{1, 2, 1}));
  EXPECT_EQ(read<float>(*data, 1, {4, 2, 1}), (std::vector<float>{1, 2, 1}));
}

TEST(Npz, FeedsCompressedBytes) {
  FaultyFileSystem files;
  auto data = open_dataset(files, kData + "packed.npz", {{input("in", {4, 2}), label("out", 10)}, DataSplit::kTrain, 50});
  ASSERT_EQ(data->size(), 50);
  std::vector<float> x = read(*data, 0, {49});
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(x[static_cast<size_t>(i)], ramp(NumberType::kU8, 49 * 8 + i));
  EXPECT_EQ(read<int32_t>(*data, 1, {49, 10}), (std::vector<int32_t>{9, 0}));
}

TEST(Npz, FindsArraysByTheModelsNames) {
  FieldSpec out{"out", FieldRole::kTarget, {1}};
  auto data = open_dataset(local_files(), kData + "names.npz", {{input("right", {3}), input("left", {2}), out}});
  EXPECT_EQ(data->fields()[1].name, "left");
  std::vector<float> right = read(*data, 0, {5}), left = read(*data, 1, {5});
  EXPECT_EQ(right[2], ramp(NumberType::kF32, 17));
  EXPECT_EQ(left[1], ramp(NumberType::kF32, 11));
  auto open = [&](std::vector<FieldSpec> fields) { open_dataset(local_files(), kData + "names.npz", {std::move(fields)}); };
  expect_error(ErrorKind::kUsage, {"no array 'lefd'", "did you mean 'left'?"}, [&] { open({input("lefd", {2}), input("right", {3})}); });
  expect_error(ErrorKind::kUsage, {"no array 'x'", "known: left, right, out, other"}, [&] { open({input("up", {2})}); });
  expect_error(ErrorKind::kUsage, {"2 samples, but array 'left'", "has 6", "array 'other'"}, [&] {
    open({input("left", {2}), input("other", {})});
  });
}

TEST(Dataset, ShapesFitUpToOnesAndFlat) {
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.f);
  auto make = [&](const Dims& have, const FieldSpec& want) { return make_dataset({want}, {{make_array(have, values), "array 'x'"}}, 100); };
  EXPECT_EQ(read(*make({4, 2, 3}, input("i", {6})), 0, {1})[5], 11);
  EXPECT_EQ(read(*make({4, 2, 3}, input("i", {2, 3, 1})), 0, {1})[5], 11);
  EXPECT_EQ(read(*make({24}, input("i", {1})), 0, {7})[0], 7);
  EXPECT_EQ(read(*make({24, 1}, input("i", {})), 0, {7})[0], 7);
  expect_error(ErrorKind::kUsage, {"samples of shape (2, 3) do not fit the model's input 'i', which takes (3, 2)", "array 'x'"}, [&] {
    make({4, 2, 3}, input("i", {3, 2}));
  });
  expect_error(ErrorKind::kUsage, {"(6,)", "categorical_crossentropy"}, [&] { make({4, 6}, label("o", 6)); });
  FieldSpec one_hot{"o", FieldRole::kTarget, {6}, Values::kOneHot};
  expect_error(ErrorKind::kUsage, {"sparse_categorical_crossentropy"}, [&] { make({24}, one_hot); });
  expect_error(ErrorKind::kUsage, {"'0' samples"}, [&] { make_dataset({input("i", {})}, {{make_array({24}, values), "x"}}, 0); });
  expect_error(ErrorKind::kUsage, {"no samples", "array 'e'"}, [&] {
    make_dataset({input("i", {3})}, {{make_array({0, 3}, std::vector<float>{}), "array 'e'"}}, 9);
  });
  expect_error(ErrorKind::kUsage, {"has no samples"}, [&] {
    make_dataset({input("i", {})}, {{make_array({}, std::vector<float>{1}), "x"}}, 9);
  });
  expect_error(ErrorKind::kUsage, {"has 6 numbers, not 24"}, [&] { make_array({2, 3}, values); });
}

TEST(Dataset, ReadsAnyPartOfASample) {
  std::vector<float> values(3 * 4 * 5 * 2);
  std::iota(values.begin(), values.end(), 0.f);
  auto data = make_dataset({input("i", {4, 5, 2})}, {{make_array({3, 4, 5, 2}, values), "x"}}, 3);
  std::vector<int64_t> samples = {2, 0};
  std::vector<float> part(2 * 2 * 3 * 1);
  data->read(0, samples, {1, 2, 1}, {2, 3, 1}, part.data());
  size_t at = 0;
  for (int64_t s : samples)
    for (int64_t i = 1; i < 3; ++i)
      for (int64_t j = 2; j < 5; ++j) EXPECT_EQ(part[at++], static_cast<float>(((s * 4 + i) * 5 + j) * 2 + 1));
}

TEST(Dataset, NamesTheFirstBadValue) {
  std::vector<float> values(20'000, 1.f);
  values[15'003] = NAN;
  values[17'000] = INFINITY;
  auto open = [&](int64_t samples) { make_dataset({input("i", {2})}, {{make_array({10'000, 2}, values), "array 'x'"}}, samples); };
  expect_error(ErrorKind::kUsage, {"'nan' is not a finite", "sample 7501 of array 'x'"}, [&] { open(10'000); });
  open(7'501);  // what is not used is not held against the file
  values[15'003] = 1;
  expect_error(ErrorKind::kUsage, {"'inf'", "sample 8500"}, [&] { open(10'000); });
}

TEST(Dataset, NamesTheFirstBadLabel) {
  auto open = [&](const Array& labels, int64_t classes) { make_dataset({label("dense", classes)}, {{labels, "array 'y'"}}, 100); };
  std::vector<int32_t> whole = {0, 9, 3, 10, -1};
  expect_error(ErrorKind::kUsage, {"value '10' is not a class number of 10 classes, 0 to 9", "sample 3 of array 'y'", "'dense'"},
               [&] { open(make_array({5}, whole), 10); });
  expect_error(ErrorKind::kUsage, {"value '-1'", "sample 4"}, [&] { open(make_array({5}, whole), 11); });
  open(make_array({4}, std::span(whole).first(4)), 11);
  std::vector<float> cut = {0, 1, 2.5};
  expect_error(ErrorKind::kUsage, {"value '2.5'", "sample 2"}, [&] { open(make_array({3}, cut), 10); });
  open(make_array({2}, std::span<const float>(cut).first(2)), 2);
}

TEST(Idx, EveryType) {
  using enum NumberType;
  for (const auto& [name, type] :
       std::map<std::string, NumberType>{{"ubyte", kU8}, {"byte", kI8}, {"short", kI16}, {"int", kI32}, {"float", kF32}, {"double", kF64}})
    expect_ramp(read_idx(local_files(), kData + name + ".idx"), type, {4, 3}, name);
}

TEST(Idx, DirectoryWithBothSplits) {
  EXPECT_TRUE(has_test_split(local_files(), kData + "idx"));
  EXPECT_FALSE(has_test_split(local_files(), kData + "plain.npz"));
  EXPECT_FALSE(has_test_split(local_files(), "synthetic"));
  std::vector<FieldSpec> fields = {input("i", {3, 2}), label("o", 5)};
  auto train = open_dataset(local_files(), kData + "idx", {fields}),
       test = open_dataset(local_files(), kData + "idx", {fields, DataSplit::kTest});
  EXPECT_EQ(train->size(), 7);
  EXPECT_EQ(test->size(), 4);
  EXPECT_EQ(read(*train, 0, {6})[5], ramp(NumberType::kU8, 41));
  EXPECT_EQ(read<int32_t>(*train, 1, {6, 4}), (std::vector<int32_t>{1, 4}));
  expect_error(ErrorKind::kUsage, {"one input and one output"}, [&] {
    open_dataset(local_files(), kData + "idx", {{input("a", {3, 2}), input("b", {3, 2})}});
  });
}

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (int value : values) text += static_cast<char>(value);
  return text;
}

TEST(Idx, RefusesWhatIsWrong) {
  Scratch scratch;
  auto bad = [&](const std::string& content, std::vector<std::string> words) {
    std::string path = scratch.write("bad", content);
    words.push_back("/bad'");
    expect_error(ErrorKind::kUsage, words, [&] { read_idx(local_files(), path); });
  };
  bad("", {"ends 4 bytes early"});
  bad("PK\x03\x04", {"not an IDX file", "50 4b 03 04"});
  bad(bytes({0, 0, 7, 1, 0, 0, 0, 0}), {"not an IDX file"});
  bad(bytes({0, 0, 8, 0}), {"'0' dims"});
  bad(bytes({0, 0, 8, 9}), {"'9' dims"});
  bad(bytes({0, 0, 8, 1, 0, 0, 0, 3, 1, 2}), {"claims shape (3,)"});
  bad(bytes({0, 0, 8, 1, 0, 0, 0, 1, 1, 2}), {"more data follows"});
  bad(bytes({0, 0, 14, 3, 127, 255, 255, 255, 127, 255, 255, 255, 127, 255, 255, 255}), {"/bad'"});           // 2^93 numbers
  bad(bytes({0, 0, 8, 3, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255}), {"more than 2^56 elements"});  // none, but their strides
  std::string packed = content_of(kData + "idx/train-images-idx3-ubyte.gz");
  bad(packed.substr(0, packed.size() - 5), {"ends early"});
  packed[packed.size() - 6] ^= 1;  // in the checksum
  bad(packed, {"damaged"});
}

TEST(Idx, CountsMustAgreeAndFilesBeThere) {
  Scratch scratch;
  std::vector<FieldSpec> fields = {input("i", {2}), label("o", 5)};
  auto open = [&] { open_dataset(local_files(), scratch.path(), {fields}); };
  expect_error(ErrorKind::kUsage, {"no file 'train-images-idx*'", scratch.path()}, open);
  scratch.write("train-images-idx3-ubyte", bytes({0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6}));
  expect_error(ErrorKind::kUsage, {"no file 'train-labels-idx*'"}, open);
  scratch.write("train-labels-idx1-ubyte", bytes({0, 0, 8, 1, 0, 0, 0, 2, 1, 2}));
  expect_error(ErrorKind::kUsage, {"2 samples, but '", "train-images-idx3-ubyte' has 3", "train-labels-idx1-ubyte'"}, open);
  scratch.write("train-labels.idx1-ubyte", "");
  expect_error(ErrorKind::kUsage, {"two files hold the same part"}, open);
}

TEST(FashionMnist, SaysWhatToInstall) {
  FaultyFileSystem files;
  files.hide("/usr/share/datasets");
  expect_error(ErrorKind::kUsage, {"'fashion-mnist' is not installed", "apt install dataset-fashion-mnist"}, [&] {
    open_dataset(files, "fashion-mnist", {{input("i", {28, 28}), label("o", 10)}});
  });
}

TEST(FashionMnist, IsReadAsBytes) {
  if (local_files().kind("/usr/share/datasets/fashion-mnist") == FileKind::kMissing)
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  auto train = open_dataset(local_files(), "fashion-mnist", {{input("i", {28, 28}), label("o", 10)}});
  ASSERT_EQ(train->size(), 60'000);
  EXPECT_TRUE(has_test_split(local_files(), "fashion-mnist"));
  EXPECT_EQ(open_dataset(local_files(), "fashion-mnist", {{input("i", {784})}, DataSplit::kTest})->size(), 10'000);
  // The first ten labels as the data set's page shows them, 6,000 of each class, and mean 72.94 of all pixels (published statistics).
  EXPECT_EQ(read<int32_t>(*train, 1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), (std::vector<int32_t>{9, 0, 0, 3, 0, 2, 7, 2, 5, 5}));
  std::vector<int64_t> all = epoch_order(60'000, 0, 0, Shuffle::kNo);
  std::map<int32_t, int> counts;
  for (int32_t value : read<int32_t>(*train, 1, all)) ++counts[value];
  for (const auto& [value, count] : counts) EXPECT_EQ(count, 6'000) << value;
  double sum = 0;
  std::vector<float> pixels(784);
  for (int64_t sample : all) {
    train->read(0, std::span(&sample, 1), pixels.data());
    sum = std::accumulate(pixels.begin(), pixels.end(), sum);
  }
  EXPECT_NEAR(sum / (60'000.0 * 784), 72.94, 0.005);
}

TEST(Open, NamesWhatIsMissing) {
  std::vector<FieldSpec> fields = {input("i", {3})};
  auto open = [&](const std::string& name) { open_dataset(local_files(), name, {fields}); };
  expect_error(ErrorKind::kUsage, {"'fasion-mnist'", "did you mean 'fashion-mnist'?"}, [&] { open("fasion-mnist"); });
  expect_error(ErrorKind::kUsage, {"'/none.npz'", "a .npz file"}, [&] { open("/none.npz"); });
  expect_error(ErrorKind::kUsage, {"not a .npz file"}, [&] { open(kData + "README.md"); });
  expect_error(ErrorKind::kUsage, {"pipe or a device"}, [&] { open("/dev/null"); });
  Scratch scratch;
  { NpyWriter(local_files(), scratch / "x.npy", {0}).commit(); }
  expect_error(ErrorKind::kUsage, {"numpy.savez"}, [&] { open(scratch / "x.npy"); });
  FaultyFileSystem files;
  files.fail(FileCall::kRead, 3, EIO);
  expect_error(ErrorKind::kStorage, {"Input/output error", "plain.npz"}, [&] { open_dataset(files, kData + "plain.npz", {fields}); });
}

// Whatever bytes a file holds: samples or an error for users, and no allocation beyond what the file could hold.
TEST(Damage, EveryCutAndManyFlipsAreErrorsOrData) {
  constexpr unsigned kSeed = 20240611;
  RecordProperty("seed", kSeed);
  std::mt19937 random(kSeed);
  FaultyFileSystem files;
  int refused = 0, total = 0;
  auto attempt = [&](const std::string& content, bool npz) {
    files.hold("damaged", content);
    ++total;
    try {
      if (npz) {
        NpzReader reader(files, "damaged");
        for (const std::string& name : reader.names()) ASSERT_LE(reader.read(name).bytes(), 1 << 20);
      } else {
        ASSERT_LE(read_idx(files, "damaged").bytes(), 1 << 20);
      }
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::kUsage) << error.what() << " (seed " << kSeed << ")";
      ++refused;
    }
  };
  for (const char* name : {"plain.npz", "packed.npz", "stream_v2.npz", "stream_v3.npz", "int.idx", "idx/train-images-idx3-ubyte.gz"}) {
    std::string whole = content_of(kData + name);
    bool npz = std::string(name).ends_with(".npz");
    for (size_t size = 0; size < whole.size(); ++size) {
      int before = refused;
      attempt(whole.substr(0, size), npz);
      EXPECT_GT(refused + (std::string(name) == "stream_v2.npz" || std::string(name) == "stream_v3.npz"), before)
          << name << " cut to " << size;
    }
    for (int round = 0; round < 1500; ++round) {
      std::string flipped = whole;
      for (int i = 0; i < 1 + round % 3; ++i) flipped[random() % flipped.size()] = static_cast<char>(random() % 4 == 0 ? 255 : random());
      attempt(flipped, npz);
    }
  }
  EXPECT_GT(refused, total / 2);
}

TEST(Damage, AChecksumThatDoesNotHoldIsNamed) {
  Scratch scratch;
  std::string whole = content_of(kData + "plain.npz");
  size_t at = whole.find("\x93NUMPY") + 128;  // the first number of x
  whole[at] ^= 1;
  std::string path = scratch.write("flipped.npz", whole);
  expect_error(ErrorKind::kUsage, {"checksum", "array 'x' of '"}, [&] { NpzReader(local_files(), path).read("x"); });
}

TEST(Npy, WritesWhatNumpyWrites) {
  Scratch scratch;
  std::vector<float> values(15);
  for (size_t i = 0; i < 15; ++i) values[i] = static_cast<float>(ramp(NumberType::kF32, static_cast<int64_t>(i)));
  NpyWriter writer(local_files(), scratch / "out.npy", {5, 3});
  writer.write_rows(3, 2, values.data() + 9);
  std::vector<float> left, right;  // the first three rows come as two halves
  for (size_t row = 0; row < 3; ++row)
    left.insert(left.end(), {values[row * 3], values[row * 3 + 1]}), right.push_back(values[row * 3 + 2]);
  writer.write({0, 0}, {3, 2}, left.data());
  writer.write({0, 2}, {3, 1}, right.data());
  EXPECT_EQ(local_files().kind(scratch / "out.npy"), FileKind::kMissing);
  writer.commit();
  // numpy.savez stored the same array: its member begins with the same bytes.
  std::string expected = content_of(kData + "plain.npz");
  expected = expected.substr(expected.find("\x93NUMPY"), 128 + 60);
  EXPECT_EQ(content_of(scratch / "out.npy"), expected);
}

TEST(Npy, AFullDiskLeavesNothing) {
  Scratch scratch;
  FaultyFileSystem files;
  files.set_capacity(200);
  std::vector<float> values(100);
  expect_error(ErrorKind::kStorage, {"No space left", "/out.npy'"},
               [&] { NpyWriter(files, scratch / "out.npy", {100}).write_rows(0, 100, values.data()); });
  EXPECT_EQ(scratch.file_count(), 0u);
}

TEST(Order, IsAPermutationOfSeedAndEpoch) {
  for (int64_t n : {0, 1, 2, 7, 1000}) {
    std::vector<int64_t> order = epoch_order(n, 5, 0, Shuffle::kYes);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, epoch_order(n, 5, 0, Shuffle::kNo));
  }
  EXPECT_EQ(epoch_order(1000, 5, 3, Shuffle::kYes), epoch_order(1000, 5, 3, Shuffle::kYes));
  EXPECT_NE(epoch_order(1000, 5, 3, Shuffle::kYes), epoch_order(1000, 5, 4, Shuffle::kYes));
  EXPECT_NE(epoch_order(1000, 5, 3, Shuffle::kYes), epoch_order(1000, 6, 3, Shuffle::kYes));
  EXPECT_NE(epoch_order(1000, 5, 3, Shuffle::kYes), epoch_order(1000, 5, 3, Shuffle::kNo));
}

TEST(Order, OfMoreSamplesThanMemoryHoldsIsRefusedBeforeItIsAllocated) {
  for (int64_t n : {int64_t{1} << 60, INT64_MAX})
    expect_error(ErrorKind::kMemory, {std::to_string(n), "--samples"}, [&] { epoch_order(n, 5, 0, Shuffle::kNo); });
}

TEST(Order, EveryPermutationIsEquallyLikely) {
  constexpr int kTrials = 24'000;
  std::map<std::vector<int64_t>, int> counts;
  for (int epoch = 0; epoch < kTrials; ++epoch) ++counts[epoch_order(4, 11, epoch, Shuffle::kYes)];
  ASSERT_EQ(counts.size(), 24u);
  double chi2 = 0;
  for (const auto& [order, count] : counts) chi2 += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi2, 49.7);  // 23 degrees of freedom, 0.1 %
}

TEST(Order, IsQuick) {
  auto best = std::chrono::nanoseconds::max();
  for (int i = 0; i < 10; ++i) {
    auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(epoch_order(60'000, 1, i, Shuffle::kYes).size(), 60'000u);
    best = std::min(best, std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin));
  }
  RecordProperty("microseconds", static_cast<int>(best.count() / 1000));
  EXPECT_LT(best, std::chrono::milliseconds(40));  // 1 ms when optimised; sanitizers take 20 times as long
}

TEST(Synthetic, HasItsDistributionsAndNoState) {
  std::vector<FieldSpec> fields = {input("i", {10, 3}),
                                   label("c", 7),
                                   {"r", FieldRole::kTarget, {2}},
                                   {"h", FieldRole::kTarget, {5}, Values::kOneHot},
                                   {"b", FieldRole::kTarget, {1}, Values::kBinary}};
  auto data = open_dataset(local_files(), "synthetic", {fields});
  ASSERT_EQ(data->size(), 1024);
  std::vector<int64_t> all = epoch_order(1024, 0, 0, Shuffle::kNo);
  auto moments = [](const std::vector<float>& values) {
    double sum = 0, squares = 0;
    for (float value : values) sum += value, squares += double{value} * value;
    auto n = static_cast<double>(values.size());
    return std::pair(sum / n, squares / n - sum / n * (sum / n));
  };
  for (int field : {0, 2}) {
    auto [mean, variance] = moments(read(*data, field, all));
    EXPECT_NEAR(mean, 0, 0.06) << field;
    EXPECT_NEAR(variance, 1, 0.08) << field;
  }
  std::map<int32_t, int> classes;
  for (int32_t value : read<int32_t>(*data, 1, all)) ++classes[value];
  EXPECT_EQ(classes.size(), 7u);
  EXPECT_EQ(classes.begin()->first, 0);
  for (const auto& [value, count] : classes) EXPECT_NEAR(count, 1024 / 7.0, 45) << value;
  std::vector<float> rows = read(*data, 3, all);
  std::set<std::ptrdiff_t> places;
  for (auto row = rows.begin(); row != rows.end(); row += 5) {
    EXPECT_EQ(std::count(row, row + 5, 1.f), 1);
    EXPECT_EQ(std::count(row, row + 5, 0.f), 4);
    places.insert(std::find(row, row + 5, 1.f) - row);
  }
  EXPECT_EQ(places.size(), 5u);
  EXPECT_NEAR(moments(read(*data, 4, all)).first, 0.5, 0.07);
}

TEST(Synthetic, APartIsThePartOfTheWhole) {
  std::vector<FieldSpec> fields = {input("i", {7, 9})};
  auto data = make_synthetic_dataset(fields, 20, 3), longer = make_synthetic_dataset(fields, 30, 3),
       other = make_synthetic_dataset(fields, 20, 4);
  std::vector<float> whole = read(*data, 0, {13}), part(3 * 4);
  int64_t sample = 13;
  data->read(0, std::span(&sample, 1), {2, 5}, {3, 4}, part.data());
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 4; ++j) EXPECT_EQ(part[i * 4 + j], whole[(2 + i) * 9 + 5 + j]);
  EXPECT_EQ(read(*longer, 0, {13}), whole);
  EXPECT_NE(read(*other, 0, {13}), whole);
  EXPECT_NE(read(*data, 0, {12}), whole);
  EXPECT_EQ(std::set<float>(whole.begin(), whole.end()).size(), 63u);
  expect_error(ErrorKind::kUsage, {"'0' samples"}, [&] { make_synthetic_dataset(fields, 0, 1); });
}

TEST(Dataset, IsReadByManyThreads) {
  auto data = open_dataset(local_files(), kData + "packed.npz", {{input("in", {4, 2}), label("out", 10)}});
  std::vector<int64_t> all = epoch_order(60, 0, 0, Shuffle::kNo);
  std::vector<float> expected = read(*data, 0, all);
  std::vector<std::thread> threads;
  std::atomic<int> equal = 0;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { equal += read(*data, 0, all) == expected; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 4);
}

}  // namespace
}  // namespace espalier
