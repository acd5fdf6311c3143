// Bytes of a file, read with bounds: numbers, digests, checksums, and the one error of this program.
#pragma once

#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <string>

namespace reader {

// Why a file is refused, in one line.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Refused(text.str());
}

// A part of a file, which somebody else keeps in memory. Without data: a segment that is not in the file.
struct Bytes {
  const uint8_t* data = nullptr;
  uint64_t size = 0;

  Bytes slice(uint64_t offset, uint64_t count) const {
    if (offset > size || count > size - offset) refuse("truncated: ", count, " bytes at ", offset, " of ", size);
    return {data + offset, count};
  }

  // A little-endian number.
  template <class T>
  T number(uint64_t offset) const {
    const uint8_t* at = slice(offset, sizeof(T)).data;
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(at[i]) << (8 * i);
    return value;
  }

  std::string text() const { return std::string(reinterpret_cast<const char*>(data), size); }
};

inline Bytes bytes_of(const std::string& text) { return {reinterpret_cast<const uint8_t*>(text.data()), text.size()}; }

// The little-endian bytes of a number.
template <class T>
std::string encoded(T value) {
  std::string text;
  for (size_t i = 0; i < sizeof(T); ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

using Digest = std::array<uint8_t, 32>;

inline Digest sha256(Bytes bytes) {
  Digest digest;
  if (EVP_Digest(bytes.data, bytes.size, digest.data(), nullptr, EVP_sha256(), nullptr) != 1) refuse("no SHA-256");
  return digest;
}

inline Digest digest_at(Bytes bytes, uint64_t offset) {
  Digest digest;
  const Bytes part = bytes.slice(offset, digest.size());
  std::copy(part.data, part.data + part.size, digest.begin());
  return digest;
}

// The CRC-32 of zlib, PNG and zip.
inline uint32_t crc32(Bytes bytes) {
  uint32_t state = ~0u;
  for (uint64_t i = 0; i < bytes.size; ++i) {
    state ^= bytes.data[i];
    for (int bit = 0; bit < 8; ++bit) state = state >> 1 ^ (state & 1 ? 0xedb88320u : 0);
  }
  return ~state;
}

inline std::string hex(Bytes bytes) {
  std::string text;
  char digits[3];
  for (uint64_t i = 0; i < bytes.size; ++i) {
    std::snprintf(digits, sizeof digits, "%02x", bytes.data[i]);
    text += digits;
  }
  return text;
}

// Text of a file as one line of ASCII: a module must not be able to steer a terminal.
inline std::string shown(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool plain = c >= ' ' && c <= '~' && c != '\\';
    line += plain ? std::string(1, c) : "\\x" + hex({reinterpret_cast<const uint8_t*>(&c), 1});
  }
  return line;
}

// A tag or name: printable ASCII, filled up with zeros.
inline std::string padded_name(Bytes field, const char* what) {
  const std::string text = field.text(), name = text.substr(0, text.find_last_not_of('\0') + 1);
  bool printable = !name.empty();
  for (const char c : name) printable = printable && c > ' ' && c <= '~';
  if (!printable) refuse(what, " is \"", shown(text), "\", printable ASCII wanted");
  return name;
}

}  // namespace reader
