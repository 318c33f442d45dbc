#pragma once
// The directory of a zip file (PKWARE APPNOTE 6.3), as numpy writes .npz: stored and deflated members, zip64 and data descriptors.
// Refuses, by name: encryption, other compressions, several disks, a name twice, anything that does not lie within the file.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/base/file.h"
#include "espalier/data/stream.h"

namespace espalier {

struct ZipMember {
  std::string name;
  Coding coding = Coding::kPlain;
  int64_t header_offset = 0;         // of its local header
  int64_t compressed = 0, size = 0;  // bytes in the file, bytes of content
  uint32_t crc = 0;                  // CRC-32 of the content
};

// The members in the order of the directory. Errors (kUsage) name the file.
std::vector<ZipMember> read_zip_directory(const ReadableFile& file);

// The content of a member, for reading once; the caller compares crc() with the member's at the end.
std::unique_ptr<Stream> open_member(const ReadableFile& file, const ZipMember& member, const std::string& where);

}  // namespace espalier
