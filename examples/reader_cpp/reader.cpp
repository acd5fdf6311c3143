// Lists a module and verifies it: reader MODULE.fb [KEY.pub.pem]
//
// Status 0 and a listing; status 1 and one line of reason. Every byte of the file is checked. With a key, the key must have
// signed the module and whatever was attached to it. docs/module-format.md and docs/signatures.md describe all that is read.

#include <fstream>
#include <iostream>
#include <iterator>

#include "module_generated.h"  // flatc --cpp --scoped-enums schema/module.fbs
#include "signatures.h"

namespace reader {

using namespace orchestrion;
template <class T>
using Vector = flatbuffers::Vector<T>;

constexpr uint32_t kNone = 0xffffffff;
constexpr uint64_t kChunk = 1 << 20;

const std::map<uint32_t, const char*> kTypes = {
    {0x0101, "i1"},           {0x0208, "i8"},           {0x0210, "i16"},         {0x0220, "i32"},
    {0x0240, "i64"},          {0x0308, "ui8"},          {0x0310, "ui16"},        {0x0320, "ui32"},
    {0x0340, "ui64"},         {0x0420, "f32"},          {0x0440, "f64"},         {0x0202, "i2"},
    {0x0204, "i4"},           {0x0302, "ui2"},          {0x0304, "ui4"},         {0x0410, "f16"},
    {0x0610, "bf16"},         {0x1008, "f8E3M4"},       {0x1108, "f8E4M3"},      {0x1208, "f8E4M3FN"},
    {0x1308, "f8E4M3FNUZ"},   {0x1408, "f8E4M3B11FNUZ"}, {0x1508, "f8E5M2"},     {0x1608, "f8E5M2FNUZ"},
    {0x1708, "f8E8M0FNU"},    {0x1804, "f4E2M1FN"},     {0x1906, "f6E2M3FN"},    {0x1a06, "f6E3M2FN"},
    {0x0540, "complex<f32>"}, {0x0580, "complex<f64>"}};
const std::vector<const char*> kFeatures = {"int8", "int16", "int64", "float64", "robust", "gpu"};
const std::vector<const char*> kKinds = {"constant", "executable", "debug", "custom", "parameter"};

template <class T, class Function>
void each(const Vector<T>* vector, Function function) {
  if (!vector) return;
  for (uint32_t i = 0; i < vector->size(); ++i) function(*vector->Get(i));
}

Digest digest_of(const orchestrion::Digest& row) {
  const std::string words = encoded(row.a()) + encoded(row.b()) + encoded(row.c()) + encoded(row.d());
  return digest_at(bytes_of(words), 0);
}

class Listing {
 public:
  Listing(const Container& file, const Module& root) : file_(file), root_(root) {
    std::string strings(reinterpret_cast<const char*>(root.strings()->data()), root.strings()->size());
    std::istringstream text(strings + '\0');
    for (std::string one; std::getline(text, one, '\0');) strings_.push_back(shown(one));
  }

  // The whole listing; nothing is printed of a file that is refused later.
  std::string text() {
    const Header& header = *root_.header();
    out_ << "format " << header.major() << "." << header.minor() << ", by " << string(header.producer()) << "\n"
         << "digest " << hex({file_.digest.data(), file_.digest.size()}) << "\n";
    each(root_.attributes(), [&](const Attribute& row) { attribute(row, ""); });
    each(root_.exports(), [&](const Exported& row) { list_export(row); });
    each(root_.programs(), [&](const Program& row) { list_program(row); });
    for (uint32_t i = 0; i < file_.segments.size(); ++i) list_segment(i);
    for (const auto* parts : {&file_.attachments, &file_.sections})
      for (const Part& part : *parts) out_ << part.place << " " << part.name << ": " << part.data.size << " bytes\n";
    return out_.str();
  }

 private:
  template <class T>
  auto row(const char* name, const Vector<T>* vector, uint64_t ordinal) const {
    if (!vector || ordinal >= vector->size()) refuse(name, ": there is no row ", ordinal);
    return vector->Get(static_cast<uint32_t>(ordinal));
  }

  // The rows that a row owns: they start where those of the row before it end, so all of them take linear time.
  template <class T, class Function>
  void owned(const char* name, const Vector<T>* vector, const Range& range, Function function) {
    uint32_t& free = free_[name];
    if (range.start() != free || range.end() < free) refuse(name, ": a range does not continue at ", free);
    for (; free < range.end(); ++free) function(*row(name, vector, free));
  }

  const std::string& string(uint32_t ordinal) const {
    if (ordinal >= strings_.size()) refuse("strings: there is no string ", ordinal);
    return strings_[ordinal];
  }

  void attribute(const Attribute& attribute, const char* indent) {
    const Range& range = attribute.value();
    const bool text = attribute.kind() == AttributeKind::Text;
    const auto* values = root_.attribute_values();
    const Bytes all = values ? Bytes{values->data(), values->size()} : Bytes{};
    const Bytes value = all.slice(range.start(), uint64_t{range.end()} - range.start());
    out_ << indent << "attribute " << string(attribute.key()) << ": " << (text ? shown(value.text()) : "hex " + hex(value))
         << "\n";
  }

  void attributes(const char* name, const Vector<const Attribute*>* vector, const Range& range) {
    owned(name, vector, range, [&](const Attribute& one) { attribute(one, "  "); });
  }

  // 4x8xf32, or ?x8xf32[batch] with the meaning of its dynamic dimensions
  std::string type(uint32_t code, const Range& dims) const {
    const auto found = kTypes.find(code);
    if (found == kTypes.end()) refuse("no element type has code ", code);
    if (dims.end() - dims.start() > 64) refuse("a tensor of more than 64 dimensions");
    std::string sizes, words;
    for (uint32_t i = dims.start(); i < dims.end(); ++i) {
      const int64_t dim = row("dims", root_.dims(), i);
      sizes += (dim < 0 ? "?" : std::to_string(dim)) + "x";
      if (dim < 0) words += (words.empty() ? "" : ", ") + string(row("expressions", root_.expressions(), -1 - dim));
    }
    return sizes + found->second + (words.empty() ? "" : "[" + words + "]");
  }

  void list_export(const Exported& row) {
    std::string arguments, results;
    owned("arguments", root_.arguments(), row.arguments(), [&](const Argument& one) {
      const std::string name = string(one.name());
      arguments += (arguments.empty() ? "" : ", ") + (name.empty() ? "" : name + ": ") + type(one.dtype(), one.dims());
    });
    owned("results", root_.results(), row.results(), [&](const Result& one) {
      results += (results.empty() ? "" : ", ") + type(one.dtype(), one.dims());
      if (one.alias() != kNone) results += " in place of argument " + std::to_string(one.alias());
    });
    out_ << "export " << string(row.name()) << "(" << arguments << ") -> (" << results << ")\n";
    attributes("export_attributes", root_.export_attributes(), row.attributes());
  }

  static std::string features(uint64_t bits) {
    std::string names;
    for (size_t bit = 0; bit < 64; ++bit)
      if (bits >> bit & 1) names += " " + (bit < kFeatures.size() ? kFeatures[bit] : "bit " + std::to_string(bit));
    return names.empty() ? "" : ", needs" + names;
  }

  void list_program(const Program& row) {
    out_ << "program " << string(row.name()) << ": profile " << string(row.profile()) << ", bytecode 1."
         << row.bytecode_minor() << features(row.features()) << "\n";
    attributes("program_attributes", root_.program_attributes(), row.attributes());
  }

  void list_segment(uint32_t ordinal) {
    const Segment& segment = *row("segments", root_.segments(), ordinal);
    const Bytes data = file_.segments[ordinal];
    const auto kind = static_cast<uint32_t>(segment.kind());
    std::vector<Digest> chunks;
    owned("chunks", root_.chunks(), segment.chunks(),
          [&](const orchestrion::Digest& one) { chunks.push_back(digest_of(one)); });
    if (!chunks.empty() && chunks.size() != segment.size() / kChunk + (segment.size() % kChunk != 0))
      refuse("segment ", ordinal, ": ", chunks.size(), " chunks for ", segment.size(), " bytes");
    if (data.data && segment.kind() == SegmentKind::Parameter) refuse("segment ", ordinal, ": a parameter in the file");
    if (data.data) verify(ordinal, segment, data, chunks);
    out_ << "segment " << ordinal << ": " << (kind < kKinds.size() ? kKinds[kind] : "unknown " + std::to_string(kind));
    if (segment.name() != kNone) out_ << " " << string(segment.name());
    out_ << ", " << segment.size() << " bytes" << (data.data ? ", digest as in the root" : ", not in this file") << "\n";
  }

  static void verify(uint32_t ordinal, const Segment& segment, Bytes data, const std::vector<Digest>& chunks) {
    if (data.size != segment.size()) refuse("segment ", ordinal, ": ", data.size, " bytes, ", segment.size(), " wanted");
    if (sha256(data) != digest_of(segment.digest())) refuse("segment ", ordinal, " is damaged: its digest differs");
    for (size_t i = 0; i < chunks.size(); ++i)
      if (sha256(data.slice(i * kChunk, std::min(kChunk, data.size - i * kChunk))) != chunks[i])
        refuse("segment ", ordinal, ": the digest of chunk ", i, " differs");
  }

  const Container& file_;
  const Module& root_;
  std::vector<std::string> strings_;
  std::map<std::string, uint32_t> free_;  // vector -> the first of its rows that nobody owns yet
  std::ostringstream out_;
};

// The root, once flatc's verifier and the versions allow to read it.
const Module& open_root(const Container& file) {
  flatbuffers::Verifier verifier(file.root.data, file.root.size);
  if (!VerifySizePrefixedModuleBuffer(verifier)) refuse("the root is no sound FlatBuffer");
  const Module& root = *GetSizePrefixedModule(file.root.data);
  const Header& header = *root.header();
  if (header.major() != 1 || header.minor() > 0)
    refuse("the module needs format ", header.major(), ".", header.minor(), ", this reader knows 1.0");
  if (header.features()) refuse("the module needs features ", header.features(), " of the format, unknown here");
  const size_t segments = root.segments() ? root.segments()->size() : 0;
  if (segments != file.segments.size())
    refuse("the root has ", segments, " segments, the directory ", file.segments.size());
  return root;
}

std::string read_all(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::string data((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) refuse(shown(path), ": cannot be read");
  return data;
}

std::string run(const char* module, const char* key_path) {
  const std::string data = read_all(module);
  const Container file = open_container(bytes_of(data));
  std::string text = Listing(file, open_root(file)).text();
  if (!key_path) return text;
  const Key key(read_all(key_path));
  check_signed(file, key);
  return text + "signed by key " + hex({key.id().data(), key.id().size()}) + "\n";
}

}  // namespace reader

int main(int count, char** arguments) {
  if (count != 2 && count != 3) {
    std::cerr << "usage: reader MODULE.fb [KEY.pub.pem]\n";
    return 2;
  }
  try {
    std::cout << reader::run(arguments[1], count == 3 ? arguments[2] : nullptr);
  } catch (const std::exception& error) {
    std::cerr << "reader: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
