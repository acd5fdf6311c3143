// The file around the root: docs/module-format.md, "Directory". Nothing here knows what the root says.
#pragma once

#include <vector>

#include "bytes.h"

namespace reader {

// An attachment, by its tag, or a section, by its name.
struct Part {
  std::string place;  // "attachment" or "section"
  std::string name;
  uint32_t flags;
  Bytes data;
};

struct Container {
  Bytes root;  // with its size prefix
  Digest digest;
  std::vector<Bytes> segments;  // without data where one is not in the file
  std::vector<Part> attachments, sections;
};

// Walks through a file: each item must lie at the first aligned place behind the one before it, and gaps are zero.
struct Walk {
  Bytes file;
  uint64_t free = 0;  // behind the last item

  static uint64_t aligned(uint64_t position, uint64_t alignment) {
    return (position + alignment - 1) / alignment * alignment;
  }

  Bytes take(const std::string& what, uint64_t offset, uint64_t size, uint64_t alignment) {
    if (offset != aligned(free, alignment))
      refuse(what, " lies at ", offset, "; ", aligned(free, alignment), " is its place");
    const Bytes gap = file.slice(free, offset - free);
    for (uint64_t i = 0; i < gap.size; ++i)
      if (gap.data[i]) refuse("padding at ", free + i, " is not zero");
    const Bytes item = file.slice(offset, size);
    free = offset + size;
    return item;
  }
};

inline void check_known(const Part& part) {
  const bool known = part.place == "attachment" && part.name == "SIGN";
  if (part.flags & 1 && !known) refuse(part.place, " ", part.name, " must be understood, and is unknown here");
}

inline std::vector<Part> read_sections(Walk& walk) {
  std::vector<Part> found;
  while (walk.free != walk.file.size) {
    const Bytes head = walk.take("a section", Walk::aligned(walk.free, 64), 32, 64);
    if (head.slice(0, 4).text() != "ORCS" || crc32(head.slice(0, 28)) != head.number<uint32_t>(28))
      refuse("bytes follow the last segment or section: no sound section lies at ", walk.free - 32);
    const uint64_t size = head.number<uint64_t>(8);
    const std::string name = padded_name(head.slice(16, 12), "a section's name");
    found.push_back({"section", name, head.number<uint32_t>(4), walk.take("section " + name, walk.free, size, 1)});
    check_known(found.back());
  }
  return found;
}

// Opens a module. What the directory says of its place, its checksums and the root's digest hold afterwards.
inline Container open_container(Bytes file) {
  if (file.size < 12 || file.slice(8, 4).text() != "ORCH") refuse("not a module: no identifier ORCH");
  Container found;
  Walk walk{file};
  found.root = walk.take("the root", 0, 4 + uint64_t{file.number<uint32_t>(0)}, 1);
  const uint64_t start = Walk::aligned(walk.free, 64);
  if (file.slice(start, 48).slice(0, 4).text() != "ORCD") refuse("no directory lies at ", start);
  const uint64_t segments = file.number<uint32_t>(start + 8), attachments = file.number<uint32_t>(start + 12);
  const Bytes directory = walk.take("the directory", start, 48 + 16 * segments + 32 * attachments, 64);
  if (crc32(directory.slice(8, directory.size - 8)) != directory.number<uint32_t>(4))
    refuse("the directory is damaged: its checksum differs");
  found.digest = sha256(found.root);
  if (found.digest != digest_at(directory, 16)) refuse("the root is damaged: its digest differs");

  uint64_t row = 48;
  for (uint64_t i = 0; i < segments; ++i, row += 16) {
    const uint64_t offset = directory.number<uint64_t>(row), size = directory.number<uint64_t>(row + 8);
    const bool absent = !offset && !size;
    const uint64_t alignment = size >= 65536 ? 16384 : 64;
    found.segments.push_back(absent ? Bytes{} : walk.take("segment " + std::to_string(i), offset, size, alignment));
  }
  for (uint64_t i = 0; i < attachments; ++i, row += 32) {
    const std::string tag = padded_name(directory.slice(row, 4), "an attachment's tag");
    const uint64_t offset = directory.number<uint64_t>(row + 8), size = directory.number<uint64_t>(row + 16);
    const Bytes data = walk.take("attachment " + tag, offset, size, 64);
    if (directory.number<uint32_t>(row + 28)) refuse("the row of attachment ", tag, " does not end with zero");
    if (crc32(data) != directory.number<uint32_t>(row + 24))
      refuse("attachment ", tag, " is damaged: its checksum differs");
    found.attachments.push_back({"attachment", tag, directory.number<uint32_t>(row + 4), data});
    check_known(found.attachments.back());
  }
  found.sections = read_sections(walk);
  return found;
}

}  // namespace reader
