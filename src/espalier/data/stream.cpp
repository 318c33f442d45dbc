#include "espalier/data/stream.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "espalier/base/error.h"

namespace espalier {

constexpr int64_t kBufferBytes = 256 << 10;               // a call a quarter MiB costs nothing beside inflating it
constexpr int64_t kMaxStep = int64_t{1} << 30;            // zlib counts in 32 bits
constexpr int64_t kMostShrink = 1032, kSlack = 64 << 10;  // the slack: what zlib holds back in its window

struct Stream::Inflater {
  explicit Inflater(Coding coding) {
    // Negative window bits: bare deflate; 16 more: gzip.
    ESPALIER_ASSERT(inflateInit2(&z, coding == Coding::kGzip ? 16 + MAX_WBITS : -MAX_WBITS) == Z_OK);
  }
  ~Inflater() { inflateEnd(&z); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream z{};
  Coding coding = Coding::kDeflate;
};

Stream::Stream(const ReadableFile& file, int64_t offset, int64_t bytes, Coding coding, std::string where)
    : file_(file), offset_(offset), left_(bytes), where_(std::move(where)) {
  if (coding == Coding::kPlain) return;
  inflater_ = std::make_unique<Inflater>(coding);
  inflater_->coding = coding;
  buffer_.resize(static_cast<size_t>(std::min(kBufferBytes, std::max<int64_t>(bytes, 1))));
}

Stream::~Stream() = default;

int64_t Stream::most_left() const {
  if (!inflater_) return left_;
  int64_t compressed = left_ + inflater_->z.avail_in;
  return ended_ ? 0 : compressed > (int64_t{1} << 52) ? compressed : compressed * kMostShrink + kSlack;
}

void Stream::refill() {
  z_stream& z = inflater_->z;
  if (z.avail_in > 0 || left_ == 0) return;
  int64_t count = std::min(left_, static_cast<int64_t>(buffer_.size()));
  file_.read_at(offset_, buffer_.data(), count);
  offset_ += count, left_ -= count;
  z.next_in = buffer_.data();
  z.avail_in = static_cast<uInt>(count);
}

// gzip files may be concatenated; zeros behind the last member are padding.
bool Stream::begin_next_member() {
  z_stream& z = inflater_->z;
  if (inflater_->coding != Coding::kGzip) return false;
  for (refill(); z.avail_in > 0 && *z.next_in == 0; refill()) ++z.next_in, --z.avail_in;
  return z.avail_in > 0 && inflateReset(&z) == Z_OK;
}

int64_t Stream::read_some(void* to, int64_t bytes) {
  bytes = std::min(bytes, kMaxStep);
  if (!inflater_) {
    bytes = std::min(bytes, left_);
    file_.read_at(offset_, to, bytes);
    offset_ += bytes, left_ -= bytes;
    return bytes;
  }
  z_stream& z = inflater_->z;
  z.next_out = static_cast<Bytef*>(to);
  z.avail_out = static_cast<uInt>(bytes);
  while (!ended_ && z.avail_out == bytes) {
    refill();
    if (z.avail_in == 0) usage_error("the compressed data ends early", where_, "the file is incomplete; fetch it again");
    int status = inflate(&z, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      ended_ = !begin_next_member();
    } else if (status != Z_OK) {
      usage_error(fmt::format("the compressed data is damaged ({})", z.msg ? z.msg : "cannot be decoded"), where_, "fetch the file again");
    }
  }
  return bytes - z.avail_out;
}

void Stream::read(void* to, int64_t bytes) {
  auto* out = static_cast<unsigned char*>(to);
  while (bytes > 0) {
    int64_t count = read_some(out, bytes);
    if (count == 0) usage_error(fmt::format("the data ends {} bytes early", bytes), where_, "the file is incomplete; fetch it again");
    crc_ = static_cast<uint32_t>(crc32_z(crc_, out, static_cast<z_size_t>(count)));
    out += count, bytes -= count;
  }
}

void Stream::expect_end() {
  unsigned char extra;
  if (read_some(&extra, 1) != 0) usage_error("more data follows than the header says", where_, "the file is damaged; fetch it again");
}

}  // namespace espalier
