#include "service/program/bytecode/exported.h"

#include <fmt/core.h>

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <vector>

#include "service/core/error.h"
#include "service/program/bytecode/bytecode_file.h"
#include "service/program/bytecode/text_writer.h"
#include "service/program/json_string.h"

namespace meshd::program {
namespace {

namespace fb = flatbuffers;

/// The place of field number `field` in the tables of FlatBuffers.
constexpr fb::voffset_t slot(int field) { return static_cast<fb::voffset_t>(4 + 2 * field); }

using Strings = fb::Vector<fb::Offset<fb::String>>;

/// PyTreeDef of jax/_src/export/serialization.fbs.
struct TreeTable : private fb::Table {
  enum class Kind : int8_t { kLeaf, kNone, kTuple, kList, kDict, kCustom };
  using Children = fb::Vector<fb::Offset<TreeTable>>;

  [[nodiscard]] Kind kind() const { return static_cast<Kind>(GetField<int8_t>(slot(0), 0)); }
  [[nodiscard]] const Children* children() const { return GetPointer<const Children*>(slot(1)); }
  [[nodiscard]] const Strings* names() const { return GetPointer<const Strings*>(slot(2)); }

  [[nodiscard]] bool Verify(fb::Verifier& verifier) const {
    return VerifyTableStart(verifier) && VerifyField<int8_t>(verifier, slot(0), 1) && VerifyOffset(verifier, slot(1)) &&
           verifier.VerifyVector(children()) && verifier.VerifyVectorOfTables(children()) &&
           VerifyOffset(verifier, slot(2)) && verifier.VerifyVector(names()) &&
           verifier.VerifyVectorOfStrings(names()) && verifier.EndTable();
  }
};

struct CheckTable : private fb::Table {
  static constexpr int8_t kPlatform = 0;

  [[nodiscard]] int8_t kind() const { return GetField<int8_t>(slot(0), 0); }
  [[nodiscard]] bool Verify(fb::Verifier& verifier) const {
    return VerifyTableStart(verifier) && VerifyField<int8_t>(verifier, slot(0), 1) && verifier.EndTable();
  }
};

/// Exported; what is not read here is neither checked.
struct ExportedTable : private fb::Table {
  using Checks = fb::Vector<fb::Offset<CheckTable>>;

  [[nodiscard]] const TreeTable* in_tree() const { return GetPointer<const TreeTable*>(slot(2)); }
  [[nodiscard]] const TreeTable* out_tree() const { return GetPointer<const TreeTable*>(slot(4)); }
  [[nodiscard]] const Strings* platforms() const { return GetPointer<const Strings*>(slot(9)); }
  [[nodiscard]] const Checks* disabled_checks() const { return GetPointer<const Checks*>(slot(12)); }
  [[nodiscard]] const fb::Vector<int8_t>* module() const { return GetPointer<const fb::Vector<int8_t>*>(slot(13)); }
  [[nodiscard]] uint16_t calling_convention() const { return GetField<uint16_t>(slot(14), 0); }
  [[nodiscard]] const fb::Vector<uint16_t>* kept_arguments() const {
    return GetPointer<const fb::Vector<uint16_t>*>(slot(15));
  }

  [[nodiscard]] bool Verify(fb::Verifier& verifier) const {
    return VerifyTableStart(verifier) && VerifyOffset(verifier, slot(2)) && verifier.VerifyTable(in_tree()) &&
           VerifyOffset(verifier, slot(4)) && verifier.VerifyTable(out_tree()) && VerifyOffset(verifier, slot(9)) &&
           verifier.VerifyVector(platforms()) && verifier.VerifyVectorOfStrings(platforms()) &&
           VerifyOffset(verifier, slot(12)) && verifier.VerifyVector(disabled_checks()) &&
           verifier.VerifyVectorOfTables(disabled_checks()) && VerifyOffset(verifier, slot(13)) &&
           verifier.VerifyVector(module()) && VerifyField<uint16_t>(verifier, slot(14), 2) &&
           VerifyOffset(verifier, slot(15)) && verifier.VerifyVector(kept_arguments()) && verifier.EndTable();
  }
};

[[noreturn]] void fail_tree() {
  throw core::Error("program_syntax",
                    "a tree of the export is malformed: names and values of a dictionary differ in number");
}

/// Writes trees; arguments that are dropped are told from others by their numbers.
class TreeWriter {
 public:
  /// `kept`: null, all leaves are.
  TreeWriter(const fb::Vector<uint16_t>* kept, TextWriter& out) : kept_(kept), out_(out) {}

  void write(const TreeTable& tree) {
    switch (tree.kind()) {
      case TreeTable::Kind::kLeaf:
        out_ << (is_kept(leaf_++) ? "\"*\"" : "\"-\"");
        return;
      case TreeTable::Kind::kNone:
        out_ << "null";
        return;
      case TreeTable::Kind::kDict:
        return write_dict(tree);
      case TreeTable::Kind::kTuple:
      case TreeTable::Kind::kList:
      case TreeTable::Kind::kCustom:
        break;
    }
    out_ << "[";
    write_children(tree, 0);
    out_ << "]";
  }

  /// The tree of a call, ((arguments...), {keywords...}): keywords are behind the arguments, if there are any.
  void write_call(const TreeTable& tree) {
    const TreeTable::Children* parts = tree.children();
    const bool is_call = tree.kind() == TreeTable::Kind::kTuple && parts != nullptr && parts->size() == 2 &&
                         parts->Get(0)->kind() == TreeTable::Kind::kTuple &&
                         parts->Get(1)->kind() == TreeTable::Kind::kDict;
    if (!is_call) return write(tree);
    const TreeTable& keywords = *parts->Get(1);
    out_ << "[";
    const size_t written = write_children(*parts->Get(0), 0);
    if (keywords.children() != nullptr && keywords.children()->size() != 0) {
      if (written != 0) out_ << ", ";
      write(keywords);
    }
    out_ << "]";
  }

 private:
  size_t write_children(const TreeTable& tree, size_t written) {
    if (tree.children() == nullptr) return written;
    for (const TreeTable* child : *tree.children()) {
      if (written++ != 0) out_ << ", ";
      write(*child);
    }
    return written;
  }

  void write_dict(const TreeTable& tree) {
    const size_t count = tree.children() == nullptr ? 0 : tree.children()->size();
    if ((tree.names() == nullptr ? 0 : tree.names()->size()) != count) fail_tree();
    out_ << "{";
    for (fb::uoffset_t i = 0; i < count; ++i) {
      if (i != 0) out_ << ", ";
      out_ << json_string(tree.names()->Get(i)->string_view());
      out_ << ": ";
      write(*tree.children()->Get(i));
    }
    out_ << "}";
  }

  [[nodiscard]] bool is_kept(uint16_t leaf) const {
    return kept_ == nullptr || std::binary_search(kept_->begin(), kept_->end(), leaf);
  }

  const fb::Vector<uint16_t>* kept_;
  TextWriter& out_;
  uint16_t leaf_ = 0;
};

constexpr std::string_view kHere = "cpu";

std::optional<int64_t> platform_index_of(const ExportedTable& exported) {
  std::string all;
  std::optional<int64_t> here;
  const Strings* platforms = exported.platforms();
  const size_t count = platforms == nullptr ? 0 : platforms->size();
  for (fb::uoffset_t i = 0; i < count; ++i) {
    const std::string_view name = platforms->Get(i)->string_view();
    if (name == kHere) here = i;
    if (i < 8) all.append(i ? ", " : "").append(name.substr(0, 64));
  }
  const CheckTable* allowed = nullptr;
  if (exported.disabled_checks() != nullptr) {
    for (const CheckTable* check : *exported.disabled_checks()) {
      if (check->kind() == CheckTable::kPlatform) allowed = check;
    }
  }
  if (!here && count != 0 && allowed == nullptr) {
    throw core::Error("unsupported_format", "the program was exported for " + all +
                                                " and not for cpu: jax.export.export(f, platforms=['cpu'])");
  }
  if (count < 2) return std::nullopt;
  return here.value_or(0);
}

}  // namespace

std::optional<Exported> read_exported(std::string_view bytes, core::MemoryReservation* memory) {
  constexpr size_t kLeast = 16;
  constexpr fb::uoffset_t kMaxTreeDepth = 128;
  constexpr fb::uoffset_t kMaxTables = 1'000'000;
  constexpr int64_t kMaxTreeBytes = int64_t{16} << 20;
  constexpr uint16_t kOldestConvention = 9;
  constexpr uint16_t kNewestConvention = 10;
  if (bytes.size() < kLeast || bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) return std::nullopt;
  Exported out;
  std::string_view from = bytes;
  const bool is_aligned = reinterpret_cast<uintptr_t>(bytes.data()) % alignof(std::max_align_t) == 0;
  const auto verified = [&] {
    fb::Verifier verifier(reinterpret_cast<const uint8_t*>(from.data()), from.size(), kMaxTreeDepth, kMaxTables);
    return verifier.VerifyBuffer<ExportedTable>(nullptr);
  };
  if (!is_aligned) {
    if (memory != nullptr) memory->grow(static_cast<int64_t>(bytes.size()));
    out.copy = bytes;
    from = out.copy;
  }
  if (!verified()) return std::nullopt;
  const auto& exported = *fb::GetRoot<ExportedTable>(from.data());
  if (exported.module() == nullptr || exported.in_tree() == nullptr || exported.out_tree() == nullptr)
    return std::nullopt;
  out.module = {reinterpret_cast<const char*>(exported.module()->data()), exported.module()->size()};
  if (!out.module.starts_with(kBytecodeMagic)) return std::nullopt;
  const uint16_t convention = exported.calling_convention();
  if (convention < kOldestConvention || convention > kNewestConvention) {
    throw core::Error("unsupported_format",
                      fmt::format("calling convention {} of jax.export is not known here: 9 and 10 are", convention));
  }
  out.platform_index = platform_index_of(exported);
  MemoryUse use(memory);
  TextWriter in_tree(kMaxTreeBytes, use);
  TreeWriter(exported.kept_arguments(), in_tree).write_call(*exported.in_tree());
  out.in_tree = std::move(in_tree).take();
  TextWriter out_tree(kMaxTreeBytes, use);
  TreeWriter(nullptr, out_tree).write(*exported.out_tree());
  out.out_tree = std::move(out_tree).take();
  return out;
}

}  // namespace meshd::program
