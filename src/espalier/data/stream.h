#pragma once
// Sequential reading of a stretch of a file, plain or compressed. A compressed stretch is never held whole.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/base/file.h"

namespace espalier {

enum class Coding { kPlain, kDeflate, kGzip };

class Stream {
 public:
  // Bytes `offset` to `offset + bytes` of the file, which must outlive the stream. `where` names the content in messages.
  Stream(const ReadableFile& file, int64_t offset, int64_t bytes, Coding coding, std::string where);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const std::string& where() const { return where_; }
  // The next `bytes` bytes. Errors (kUsage): the content ends before, or its compression is damaged.
  void read(void* to, int64_t bytes);
  // An Error (kUsage) when more follows, or when the checksum of a gzip stream does not hold.
  void expect_end();
  // No more than this can still come: what a header claims is held against it before anything is allocated. Deflate shrinks at most
  // 1032 times (zlib's technical details).
  int64_t most_left() const;
  uint32_t crc() const { return crc_; }  // CRC-32 of all that was read

 private:
  struct Inflater;
  int64_t read_some(void* to, int64_t bytes);  // 0 at the end
  void refill();
  bool begin_next_member();

  const ReadableFile& file_;
  int64_t offset_, left_;  // of the file's bytes that were not read yet
  std::string where_;
  std::unique_ptr<Inflater> inflater_;  // null when plain
  std::vector<unsigned char> buffer_;
  bool ended_ = false;
  uint32_t crc_ = 0;
};

}  // namespace espalier
