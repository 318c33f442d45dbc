#pragma once
// A short list of dimension sizes or offsets, held by value. Ranks are small, and compiling touches thousands of them: no allocation.
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

#include "espalier/base/error.h"

namespace espalier {

inline constexpr int kMaxRank = 8;  // layers of the field stay at or below 5; attention's factor rules reach 6

class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> sizes) : Dims(sizes.begin(), sizes.end()) {}
  explicit Dims(const std::vector<int64_t>& sizes) : Dims(sizes.begin(), sizes.end()) {}
  Dims(int rank, int64_t value) : rank_(rank) {
    ESPALIER_ASSERT(rank >= 0 && rank <= kMaxRank);
    std::fill_n(size_.begin(), rank, value);
  }
  template <std::input_iterator It>
  Dims(It begin, It end) {
    for (; begin != end; ++begin) push_back(*begin);
  }

  static Dims filled(int rank, int64_t value) {
    Dims dims;
    while (dims.rank_ < rank) dims.push_back(value);
    return dims;
  }

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  int64_t operator[](int dim) const { return size_[static_cast<size_t>(dim)]; }
  int64_t& operator[](int dim) { return size_[static_cast<size_t>(dim)]; }
  const int64_t* begin() const { return size_.data(); }
  const int64_t* end() const { return size_.data() + rank_; }
  int64_t* begin() { return size_.data(); }
  int64_t* end() { return size_.data() + rank_; }
  int64_t back() const { return size_[static_cast<size_t>(rank_ - 1)]; }
  void push_back(int64_t size) {
    ESPALIER_ASSERT(rank_ < kMaxRank);
    size_[static_cast<size_t>(rank_++)] = size;
  }

  // Product of the sizes; 1 for rank 0. The caller has checked user input with `checked_volume`.
  int64_t volume() const {
    int64_t product = 1;
    for (int64_t size : *this) product *= size;
    return product;
  }
  std::vector<int64_t> vector() const { return {begin(), end()}; }

  friend bool operator==(const Dims& a, const Dims& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
  friend bool operator<(const Dims& a, const Dims& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<int64_t, kMaxRank> size_{};
  int rank_ = 0;
};

// "(32, 64)", "(32,)", "()".
std::string to_string(const Dims& dims);

// Row-major strides in elements.
Dims row_major_strides(const Dims& shape);

// Product of sizes that came from a user: an Error naming `where` when one is negative or the product, without its zeros, exceeds 2^56.
int64_t checked_volume(const Dims& shape, const std::string& where);

}  // namespace espalier
