// Uses: base
// The file layer: what a failure at any call leaves behind, and what the user is told.
#include "espalier/base/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <thread>

#include "espalier/base/error.h"
#include "espalier/base/number.h"
#include "espalier/base/runs.h"
#include "expect_error.h"
#include "faulty_file_system.h"
#include "scratch.h"
#include "texts.h"

namespace espalier {
namespace {

TEST(File, ReadsAtAnyPosition) {
  Scratch scratch;
  auto file = local_files().open(scratch.write("a", "0123456789"));
  EXPECT_EQ(file->size(), 10);
  char middle[4] = {};
  file->read_at(3, middle, 3);
  EXPECT_STREQ(middle, "345");
  expect_error(ErrorKind::kStorage, {"ended at byte 10", "/a'"}, [&] { file->read_at(8, middle, 3); });
}

TEST(File, ToldWhatIsThere) {
  Scratch scratch;
  std::string path = scratch.write("a", "x");
  EXPECT_EQ(local_files().kind(path), FileKind::kRegular);
  EXPECT_EQ(local_files().kind(scratch.path()), FileKind::kDirectory);
  EXPECT_EQ(local_files().kind(scratch / "none"), FileKind::kMissing);
  EXPECT_EQ(local_files().kind(path + "/below"), FileKind::kMissing);
  EXPECT_EQ(local_files().kind("/dev/null"), FileKind::kOther);
  scratch.write("b", "");
  EXPECT_EQ(local_files().list(scratch.path()), (std::vector<std::string>{"a", "b"}));
}

TEST(File, RefusesWhatIsNoFile) {
  Scratch scratch;
  expect_error(ErrorKind::kStorage, {"cannot open (No such file or directory)", "/none'", "check the path"},
               [&] { local_files().open(scratch / "none"); });
  expect_error(ErrorKind::kStorage, {"Is a directory"}, [&] { local_files().open(scratch.path()); });
  std::string pipe = scratch / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error(ErrorKind::kStorage, {"pipe or a device"}, [&] { local_files().open(pipe); });
  expect_error(ErrorKind::kStorage, {"cannot list"}, [&] { local_files().list(scratch / "none"); });
}

TEST(File, ReadsAPipeWhole) {
  Scratch scratch;
  std::string pipe = scratch / "pipe", text(200'000, 'p');
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { scratch.write("pipe", text); });
  EXPECT_EQ(local_files().read_all(pipe, 1 << 20), text);
  writer.join();
  expect_error(ErrorKind::kUsage, {"longer than 9 B", "/a'"}, [&] { local_files().read_all(scratch.write("a", "0123456789"), 9); });
  EXPECT_EQ(local_files().read_all(scratch / "a", 10), "0123456789");
}

TEST(AtomicFile, AppearsAtCommitOnly) {
  Scratch scratch;
  std::string path = scratch.write("target", "old");
  {
    AtomicFile file(local_files(), path);
    file.write_at(2, "w!", 2);
    file.write_at(0, "ne", 2);
    EXPECT_EQ(content_of(path), "old");
    file.commit();
    EXPECT_EQ(content_of(path), "new!");
  }
  EXPECT_EQ(scratch.file_count(), 1u);
  { AtomicFile abandoned(local_files(), path); }
  EXPECT_EQ(content_of(path), "new!");
  EXPECT_EQ(scratch.file_count(), 1u);
}

TEST(AtomicFile, OldFileSurvivesEveryFailure) {
  struct Case {
    FileCall call;
    int nth;
    int error_number;
    const char* words;
  };
  for (const Case& c :
       {Case{FileCall::kCreate, 1, EACCES, "Permission denied"}, Case{FileCall::kWrite, 1, ENOSPC, "No space left on device"},
        Case{FileCall::kWrite, 2, EIO, "Input/output error"}, Case{FileCall::kSync, 1, EIO, "Input/output error"},
        Case{FileCall::kClose, 1, EDQUOT, "quota"}, Case{FileCall::kRename, 1, EXDEV, "ross-device"}}) {
    Scratch scratch;
    FaultyFileSystem files;
    std::string path = scratch.write("target", "old");
    files.fail(c.call, c.nth, c.error_number);
    expect_error(ErrorKind::kStorage, {c.words, "/target'"}, [&] {
      AtomicFile file(files, path);
      file.write_at(0, "first half", 10);
      file.write_at(10, "second half", 11);
      file.commit();
    });
    EXPECT_EQ(content_of(path), "old") << c.words;
    EXPECT_EQ(scratch.file_count(), 1u) << c.words;
  }
}

TEST(AtomicFile, DirectorySyncFailureLeavesTheWholeNewFile) {
  Scratch scratch;
  FaultyFileSystem files;
  std::string path = scratch.write("target", "old");
  files.fail(FileCall::kSyncDirectory, 1, EIO);
  expect_error(ErrorKind::kStorage, {"Input/output error"}, [&] { write_file(files, path, "new"); });
  EXPECT_EQ(content_of(path), "new");
  EXPECT_EQ(scratch.file_count(), 1u);
}

TEST(AtomicFile, ReplacesTheFileBehindALink) {
  Scratch scratch;
  std::string target = scratch.write("target", "old"), link = scratch / "link";
  ASSERT_EQ(::symlink("target", link.c_str()), 0);
  write_file(local_files(), link, "new");
  EXPECT_EQ(content_of(target), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST(AtomicFile, RefusesPlacesThatCannotHoldAFile) {
  Scratch scratch;
  expect_error(ErrorKind::kStorage, {"/none/file'", "No such file or directory", "directories are not created"},
               [&] { check_writable(local_files(), scratch / "none/file"); });
  expect_error(ErrorKind::kStorage, {"Is a directory"}, [&] { check_writable(local_files(), scratch.path()); });
  expect_error(ErrorKind::kStorage, {"pipe or a device", "/dev/null"}, [&] { check_writable(local_files(), "/dev/null"); });
  expect_error(ErrorKind::kStorage, {"without a name"}, [&] { check_writable(local_files(), ""); });
  EXPECT_EQ(local_files().kind("/dev/null"), FileKind::kOther);
  check_writable(local_files(), scratch / "fine");
  EXPECT_EQ(scratch.file_count(), 0u);
}

TEST(AtomicFile, TwoAtOnceDoNotMeet) {
  Scratch scratch;
  AtomicFile first(local_files(), scratch / "a"), second(local_files(), scratch / "b");
  first.write_at(0, "1", 1);
  second.write_at(0, "2", 1);
  second.commit();
  first.commit();
  EXPECT_EQ(content_of(scratch / "a") + content_of(scratch / "b"), "12");
}

template <class From>
std::vector<float> floats(NumberType type, std::vector<From> values) {
  std::vector<float> out(values.size());
  convert(type, values.data(), static_cast<int64_t>(values.size()), out.data());
  return out;
}

TEST(Number, HalvesAreExact) {
  // Patterns and values of IEEE 754-2008 binary16: one, largest, smallest normal, largest and smallest subnormal, zeros, infinity.
  EXPECT_EQ(floats<uint16_t>(NumberType::kF16, {0x3C00, 0x7BFF, 0x0400, 0x03FF, 0x0001, 0x8001, 0xC000, 0x7C00, 0xFC00, 0x3555}),
            (std::vector<float>{1, 65504, 0x1p-14f, 0x1.ff8p-15f, 0x1p-24f, -0x1p-24f, -2, INFINITY, -INFINITY, 0.333251953125f}));
  std::vector<float> rest = floats<uint16_t>(NumberType::kF16, {0x8000, 0x7E00});
  EXPECT_TRUE(rest[0] == 0 && std::signbit(rest[0]) && std::isnan(rest[1]));
  EXPECT_EQ(floats<uint16_t>(NumberType::kBF16, {0x3F80, 0xC0A0, 0x7F80, 0x0001}), (std::vector<float>{1, -5, INFINITY, 0x1p-133f}));
}

TEST(Number, IntegersSaturate) {
  std::vector<double> values = {1e300, -1e300, 2.9, -2.9, NAN, 2147483648.0};
  std::vector<int32_t> out(values.size());
  convert(NumberType::kF64, values.data(), 6, out.data());
  EXPECT_EQ(out, (std::vector<int32_t>{INT32_MAX, INT32_MIN, 2, -2, 0, INT32_MAX}));
  std::vector<int64_t> wide = {int64_t{1} << 40, -(int64_t{1} << 40), -7};
  convert(NumberType::kI64, wide.data(), 3, out.data());
  EXPECT_EQ((std::vector<int32_t>{out[0], out[1], out[2]}), (std::vector<int32_t>{INT32_MAX, INT32_MIN, -7}));
  uint64_t largest = ~uint64_t{0};
  convert(NumberType::kU64, &largest, 1, out.data());
  EXPECT_EQ(out[0], INT32_MAX);
  EXPECT_EQ(floats<uint8_t>(NumberType::kBool, {0, 1, 255}), (std::vector<float>{0, 1, 1}));
}

// Against the slow obvious version: every element of the part, one by one.
TEST(Runs, CoverEveryPartOnceAndInOrder) {
  Dims whole{3, 4, 5};
  for (int64_t code = 0; code < 6 * 10 * 15; ++code) {
    Dims offset(3, 0), shape(3, 0);
    int64_t rest = code;
    for (int d = 0; d < 3; ++d) {  // every [begin, end) of every dim
      int64_t pairs = whole[d] * (whole[d] + 1) / 2, pair = rest % pairs, length = whole[d];
      rest /= pairs;
      for (; pair >= length; --length) pair -= length, ++offset[d];
      shape[d] = pair + 1;
    }
    std::vector<int64_t> expected, found;
    for (int64_t i = 0; i < shape[0]; ++i)
      for (int64_t j = 0; j < shape[1]; ++j)
        for (int64_t k = 0; k < shape[2]; ++k) expected.push_back(((offset[0] + i) * 4 + offset[1] + j) * 5 + offset[2] + k);
    int64_t runs = 0;
    for_each_run(whole, offset, shape, [&](int64_t at_whole, int64_t at_part, int64_t count) {
      EXPECT_EQ(at_part, static_cast<int64_t>(found.size()));
      for (int64_t i = 0; i < count; ++i) found.push_back(at_whole + i);
      ++runs;
    });
    ASSERT_EQ(found, expected) << to_string(offset) << to_string(shape);
    int64_t fewest = 1;
    for (size_t i = 1; i < expected.size(); ++i) fewest += expected[i] != expected[i - 1] + 1;
    EXPECT_EQ(runs, fewest) << to_string(offset) << to_string(shape);
  }
  int64_t calls = 0;
  for_each_run({}, {}, {}, [&](int64_t, int64_t, int64_t count) { calls += count; });
  EXPECT_EQ(calls, 1);
  for_each_run({3, 4}, {1, 4}, {2, 0}, [&](int64_t, int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace espalier
