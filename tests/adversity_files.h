#pragma once
// The damaged files that adversity/*.txt names: those of more than a line, or of bytes. Nothing here is written by the code under test.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "scratch.h"
#include "texts.h"

namespace espalier {

inline std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

// Little endian.
template <class T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::string noise(size_t bytes) {
  std::mt19937 random(20261130);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

inline uint32_t crc32_of(const std::string& text) {
  uint32_t crc = ~0u;
  for (unsigned char c : text) {
    crc ^= c;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

// A .npy file: a header that says what the bytes are, true or not.
inline std::string npy(const std::string& type, const std::string& shape, const std::string& values) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.append(117 - header.size(), ' ') += "\n";
  return std::string("\x93NUMPY\x01\x00", 8) + bytes_of(static_cast<uint16_t>(header.size())) + header + values;
}

// A zip archive of stored files, as numpy.savez makes it.
inline std::string zip(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string archive, directory;
  for (const auto& [name, content] : files) {
    const auto size = static_cast<uint32_t>(content.size());
    const std::string common = bytes_of(uint16_t{20}) + bytes_of(uint16_t{0}) + bytes_of(uint16_t{0}) + bytes_of(uint32_t{0}) +
                               bytes_of(crc32_of(content)) + bytes_of(size) + bytes_of(size) +
                               bytes_of(static_cast<uint16_t>(name.size())) + bytes_of(uint16_t{0});
    const auto offset = static_cast<uint32_t>(archive.size());
    archive += "PK\x03\x04" + common + name + content;
    directory += "PK\x01\x02" + bytes_of(uint16_t{20}) + common + std::string(10, '\0') + bytes_of(offset) + name;
  }
  const auto count = static_cast<uint16_t>(files.size());
  return archive + directory + "PK\x05\x06" + std::string(4, '\0') + bytes_of(count) + bytes_of(count) +
         bytes_of(static_cast<uint32_t>(directory.size())) + bytes_of(static_cast<uint32_t>(archive.size())) + bytes_of(uint16_t{0});
}

// safetensors; the length in front may lie.
inline std::string safetensors(const std::string& header, size_t data_bytes, int64_t length = -1) {
  return bytes_of(length < 0 ? static_cast<uint64_t>(header.size()) : static_cast<uint64_t>(length)) + header +
         std::string(data_bytes, '\0');
}

// IDX: type code, sizes, bytes.
inline std::string idx(char type, const std::vector<uint32_t>& sizes, const std::string& values) {
  std::string text = {0, 0, type, static_cast<char>(sizes.size())};
  for (uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(size >> shift);
  return text + values;
}

inline void make_model_files(const Scratch& at) {
  const std::string tests = ESPALIER_TEST_DIR;
  for (const char* folder : {"/models", "/data", "/adversity"})
    for (const auto& entry : std::filesystem::directory_iterator(tests + folder))
      if (entry.path().extension() == ".json" || entry.path().extension() == ".npz")
        std::filesystem::copy_file(entry.path(), at / entry.path().filename());
  const std::string two_dense = content_of(at / "two_dense.json");
  at.write("empty.json", "");
  at.write("truncated.json", two_dense.substr(0, 600));
  at.write("deep.json", repeated("[", 200000));
  at.write("deep_objects.json", repeated("{\"a\": ", 200000));
  at.write("deep_model.json", "{\"class_name\": \"Sequential\", \"config\": {\"layers\": " + repeated("[", 200000));
  at.write("archive.keras", zip({{"config.json", two_dense}}));
  at.write("noise", noise(4096));
}

// For small.json: x (3,) and classes 0 to 2.
inline void make_data_files(const Scratch& at) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<int64_t> y = {0, 1, 2, 0};
  auto with = [](auto values, size_t i, auto value) {
    values[i] = value;
    return values;
  };
  const std::string good_x = npy("<f4", "(4, 3)", bytes_of(x)), good_y = npy("<i8", "(4,)", bytes_of(y));
  auto npz = [&](const std::string& name, const std::string& x_file, const std::string& y_file) {
    at.write(name, zip({{"x.npy", x_file}, {"y.npy", y_file}}));
  };
  npz("good.npz", good_x, good_y);
  npz("nan.npz", npy("<f4", "(4, 3)", bytes_of(with(with(x, 7, NAN), 11, NAN))), good_y);
  npz("infinite.npz", npy("<f4", "(4, 3)", bytes_of(with(x, 3, -INFINITY))), good_y);
  npz("large.npz", npy("<f8", "(4, 3)", bytes_of(with(std::vector<double>(x.begin(), x.end()), 9, 1e300))), good_y);
  npz("label.npz", good_x, npy("<i8", "(4,)", bytes_of(with(y, 2, int64_t{3}))));
  npz("negative.npz", good_x, npy("<i8", "(4,)", bytes_of(with(y, 1, int64_t{-1}))));
  npz("fraction.npz", good_x, npy("<f4", "(4,)", bytes_of(std::vector<float>{0, 1, 0.5, 2})));
  npz("one_hot.npz", good_x, npy("<f4", "(4, 3)", bytes_of(std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0})));
  npz("narrow.npz", npy("<f4", "(4, 2)", bytes_of(std::vector<float>(8))), good_y);
  npz("fewer_labels.npz", good_x, npy("<i8", "(3,)", bytes_of(std::vector<int64_t>(3))));
  npz("nothing.npz", npy("<f4", "(0, 3)", ""), npy("<i8", "(0,)", ""));
  npz("number.npz", npy("<f4", "()", bytes_of(1.0f)), good_y);
  npz("text.npz", npy("<U3", "(4, 3)", std::string(144, 'a')), good_y);
  npz("objects.npz", npy("|O", "(4, 3)", "\x80\x04K\x01."), good_y);
  npz("complex.npz", npy("<c8", "(4, 3)", std::string(96, '\0')), good_y);
  npz("claims.npz", npy("<f4", "(1099511627776, 3)", bytes_of(x)), good_y);
  npz("overflow.npz", npy("<f4", "(4611686018427387904, 4611686018427387904)", bytes_of(x)), good_y);
  npz("short.npz", npy("<f4", "(4, 3)", bytes_of(x).substr(0, 40)), good_y);
  npz("header.npz", std::string("\x93NUMPY\x01\x00\x05\x00", 10) + "{'des", good_y);
  at.write("only_x.npz", zip({{"x.npy", good_x}}));
  at.write("no_arrays.npz", zip({}));
  at.write("single.npy", good_x);
  at.write("truncated.npz", content_of(at / "good.npz").substr(0, 300));
  std::string damaged = content_of(at / "good.npz");
  damaged[damaged.find('\n') + 5] ^= 1;  // in a number of x
  at.write("damaged.npz", damaged);
  at.write("text.txt", "1,2,3\n4,5,6\n");

  const std::string images = idx(8, {3, 2, 2}, std::string(12, 'a')), labels = idx(8, {3}, std::string({0, 1, 2}));
  auto directory = [&](const std::string& name, const std::string& image_file, const std::string& label_file) {
    std::filesystem::create_directory(at / name);
    if (!image_file.empty()) at.write(name + "/train-images-idx3-ubyte", image_file);
    if (!label_file.empty()) at.write(name + "/train-labels-idx1-ubyte", label_file);
  };
  directory("idx_good", images, labels);
  directory("idx_none", "", "");
  directory("idx_no_labels", images, "");
  directory("idx_short", images.substr(0, 24), labels);
  directory("idx_long", images + "a", labels);
  directory("idx_other", "not IDX at all", labels);
  directory("idx_type", idx(7, {3, 2, 2}, std::string(12, 'a')), labels);
  directory("idx_label", images, idx(8, {3}, std::string({0, 1, 9})));
  directory("idx_counts", images, idx(8, {2}, std::string({0, 1})));
  directory("idx_claims", idx(8, {0xffffffff, 0xffffffff, 0xffffffff}, "aaaa"), labels);
}

// For small.json: sequential/dense/kernel (3, 3) and sequential/dense/bias (3).
inline void make_weights_files(const Scratch& at) {
  const std::string kernel = R"("sequential/dense/kernel":{"dtype":"F32","shape":[3,3],"data_offsets":[0,36]})",
                    bias = R"("sequential/dense/bias":{"dtype":"F32","shape":[3],"data_offsets":[36,48]})";
  const std::string good = safetensors("{" + kernel + "," + bias + "}", 48);
  at.write("good.safetensors", good);
  at.write("lacking.safetensors", safetensors("{" + kernel + "}", 36));
  at.write(
      "extra.safetensors",
      safetensors("{" + kernel + "," + bias + R"(,"sequential/dense_1/bias":{"dtype":"F32","shape":[1],"data_offsets":[48,52]}})", 52));
  at.write("shape.safetensors",
           safetensors("{" + kernel + R"(,"sequential/dense/bias":{"dtype":"F32","shape":[4],"data_offsets":[36,52]}})", 52));
  at.write("renamed.safetensors",
           safetensors("{" + kernel + R"(,"sequential/dense/bais":{"dtype":"F32","shape":[3],"data_offsets":[36,48]}})", 48));
  at.write("twice.safetensors", safetensors("{" + kernel + "," + kernel + "}", 36));
  at.write("dtype.safetensors",
           safetensors("{" + bias + R"(,"sequential/dense/kernel":{"dtype":"F31","shape":[3,3],"data_offsets":[0,36]}})", 48));
  at.write("truncated.safetensors", good.substr(0, good.size() - 8));
  at.write("longer.safetensors", good + "12345678");
  at.write("header.safetensors", good.substr(0, 60));
  at.write("length.safetensors", safetensors("{" + kernel + "," + bias + "}", 48, int64_t{1} << 60));
  at.write("overlap.safetensors",
           safetensors("{" + kernel + R"(,"sequential/dense/bias":{"dtype":"F32","shape":[3],"data_offsets":[24,36]}})", 36));
  at.write("sizes.safetensors",
           safetensors("{" + bias + R"(,"sequential/dense/kernel":{"dtype":"F32","shape":[3,1000000000000],"data_offsets":[0,36]}})", 48));
  at.write("deep.safetensors", safetensors(repeated("[", 200000), 0));
  at.write("empty.safetensors", "");
}

inline void make_adversity_files(const Scratch& at) {
  make_model_files(at);
  make_data_files(at);
  make_weights_files(at);
  std::filesystem::create_directory(at / "directory");
}

}  // namespace espalier
