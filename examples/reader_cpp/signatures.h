// Signature sets and keys: docs/signatures.md, "The form of a signature".
#pragma once

#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/obj_mac.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <map>
#include <memory>

#include "container.h"

namespace reader {

enum : uint32_t { kEd25519 = 1, kP256 = 2 };

struct Signature {
  uint32_t algorithm;
  Digest key;
  std::vector<std::string> parts;  // 44 bytes each: name and digest
  Bytes value;
};

struct SignatureSet {
  std::string kind;
  Digest digest;
  std::vector<Signature> signatures;
};

inline Signature read_signature(Bytes data, uint64_t& at) {
  Signature row{data.number<uint32_t>(at), digest_at(data, at + 4), {}, {}};
  const uint32_t count = data.number<uint32_t>(at + 36);
  if (count > 256) refuse("signature set: ", count, " parts");
  at += 40;
  for (uint32_t i = 0; i < count; ++i, at += 44) {
    row.parts.push_back(data.slice(at, 44).text());
    padded_name(data.slice(at, 12), "signature set: the name of a part");
    if (i && row.parts[i] <= row.parts[i - 1]) refuse("signature set: its parts do not ascend");
  }
  row.value = data.slice(at + 4, data.number<uint32_t>(at));
  at += 4 + row.value.size;
  const bool known = row.algorithm == kEd25519 || row.algorithm == kP256;
  if (known && row.value.size != 64) refuse("signature set: a signature of ", row.value.size, " bytes, not 64");
  return row;
}

inline SignatureSet read_signatures(Bytes all) {
  if (all.size < 56 || all.size > 1 << 20) refuse("signature set: ", all.size, " bytes");
  const Bytes data = all.slice(0, all.size - 4);
  if (data.slice(0, 4).text() != "ORSG") refuse("signature set: it does not start with ORSG");
  if (data.number<uint32_t>(4) != 1) refuse("signature set: version ", data.number<uint32_t>(4), ", 1 wanted");
  if (crc32(data) != all.number<uint32_t>(data.size)) refuse("signature set: damaged, its checksum differs");
  SignatureSet found{padded_name(data.slice(8, 8), "signature set: its kind"), digest_at(data, 16), {}};
  const uint32_t count = data.number<uint32_t>(48);
  if (count > 64) refuse("signature set: ", count, " signatures");
  uint64_t at = 52;
  for (uint32_t i = 0; i < count; ++i) {
    found.signatures.push_back(read_signature(data, at));
    if (i && found.signatures[i].key <= found.signatures[i - 1].key) refuse("signature set: its keys do not ascend");
  }
  if (at != data.size) refuse("signature set: ", data.size - at, " bytes behind its signatures");
  return found;
}

// What a signature says of an attachment or a section: its name and digest, 44 bytes.
inline std::string part_row(const Part& part) {
  const auto padded = [](std::string name) { return name.append(12 - name.size(), '\0'); };
  const std::string text = padded(part.place) + padded(part.name) + encoded(part.flags) + encoded(part.data.size);
  const Digest digest = sha256(bytes_of(text + part.data.text()));
  return padded(part.name) + Bytes{digest.data(), digest.size()}.text();
}

// A public key in PEM: Ed25519, or P-256 with its point uncompressed.
class Key {
 public:
  explicit Key(const std::string& pem) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new_mem_buf(pem.data(), pem.size()), BIO_free);
    key_.reset(PEM_read_bio_PUBKEY(memory.get(), nullptr, nullptr, nullptr));
    unsigned char* der = nullptr;
    const int size = key_ ? i2d_PUBKEY(key_.get(), &der) : 0;
    if (size <= 0) refuse("the key is no public key in PEM");
    const std::string form(reinterpret_cast<char*>(der), size);
    OPENSSL_free(der);
    const std::string start = hex(bytes_of(form));
    if (size == 44 && !start.find("302a300506032b6570032100")) algorithm_ = kEd25519;
    if (size == 91 && !start.find("3059301306072a8648ce3d020106082a8648ce3d03010703420004")) algorithm_ = kP256;
    if (!algorithm_) refuse("the key is neither Ed25519 nor P-256");
    id_ = sha256(bytes_of(form));
  }

  const Digest& id() const { return id_; }

  // Whether the key made the signature over a message.
  bool made(const Signature& signature, const std::string& message) const {
    if (signature.algorithm != algorithm_) return false;
    const std::string value = algorithm_ == kP256 ? p256_der(signature.value) : signature.value.text();
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    const EVP_MD* hash = algorithm_ == kP256 ? EVP_sha256() : nullptr;
    return !value.empty() && EVP_DigestVerifyInit(context.get(), nullptr, hash, nullptr, key_.get()) == 1 &&
           EVP_DigestVerify(context.get(), bytes_of(value).data, value.size(), bytes_of(message).data,
                            message.size()) == 1;
  }

 private:
  // r and s as OpenSSL takes them; empty unless s is at most half of the order, so that there is one form of each.
  static std::string p256_der(Bytes value) {
    const std::unique_ptr<EC_GROUP, decltype(&EC_GROUP_free)> group(
        EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1), EC_GROUP_free);
    const std::unique_ptr<BIGNUM, decltype(&BN_free)> half(BN_dup(EC_GROUP_get0_order(group.get())), BN_free);
    BN_rshift1(half.get(), half.get());
    const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> pair(ECDSA_SIG_new(), ECDSA_SIG_free);
    ECDSA_SIG_set0(pair.get(), BN_bin2bn(value.data, 32, nullptr), BN_bin2bn(value.data + 32, 32, nullptr));
    if (BN_cmp(ECDSA_SIG_get0_s(pair.get()), half.get()) > 0) return "";
    unsigned char* der = nullptr;
    const int size = i2d_ECDSA_SIG(pair.get(), &der);
    std::string text(reinterpret_cast<char*>(der), size > 0 ? size : 0);
    OPENSSL_free(der);
    return text;
  }

  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_{nullptr, EVP_PKEY_free};
  uint32_t algorithm_ = 0;
  Digest id_;
};

// Why a signature by the key does not suffice; empty if it does. `rows`: of all that the root does not name, with names.
inline std::string objection(const Signature& signature, const Key& key, const Digest& digest,
                             const std::map<std::string, std::string>& rows) {
  std::string message = std::string("orchestrion signature 1\n") + std::string("module\0\0", 8);
  message += Bytes{digest.data(), digest.size()}.text() + encoded(static_cast<uint32_t>(signature.parts.size()));
  for (const std::string& part : signature.parts) message += part;
  if (!key.made(signature, message)) return "its signature is wrong";
  for (const auto& [row, name] : rows)
    if (!std::binary_search(signature.parts.begin(), signature.parts.end(), row)) return "it did not sign " + name;
  return rows.size() == signature.parts.size() ? "" : "it signed something that is not in this file";
}

// Refuses a module that the key did not sign, with every attachment and section that is in it.
inline void check_signed(const Container& file, const Key& key) {
  std::map<std::string, std::string> rows;
  for (const auto* parts : {&file.attachments, &file.sections})
    for (const Part& part : *parts)
      if (part.place != "attachment" || part.name != "SIGN") rows[part_row(part)] = part.name;
  std::string reason = "it is not among the signers";
  for (const Part& attachment : file.attachments) {
    if (attachment.name != "SIGN") continue;
    const SignatureSet set = read_signatures(attachment.data);
    for (const Signature& signature : set.signatures) {
      if (set.kind != "module" || set.digest != file.digest || signature.key != key.id()) continue;
      reason = objection(signature, key, file.digest, rows);
      if (reason.empty()) return;
    }
  }
  refuse("not signed by key ", hex({key.id().data(), 8}), ": ", reason);
}

}  // namespace reader
