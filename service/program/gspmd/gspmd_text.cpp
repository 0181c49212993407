#include "service/program/gspmd/gspmd_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"
#include "service/program/limits.h"

namespace meshd::program {
namespace {

constexpr size_t kShownCharacters = 120;
constexpr size_t kMaxShardings = 65'536;

/// Reads the notation from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<GspmdWords> all() {
    std::vector<GspmdWords> out;
    expect('{');
    space();
    if (at_ < text_.size() && text_[at_] == '{') {
      do {
        if (out.size() == kMaxShardings) wrong(fmt::format("at most {} shardings", kMaxShardings));
        expect('{');
        out.push_back(one());
      } while (accept(','));
      expect('}');
    } else if (!accept('}')) {
      out.push_back(one());
    }
    space();
    if (at_ != text_.size()) wrong("nothing behind the sharding");
    return out;
  }

 private:
  [[noreturn]] void wrong(const std::string& expected) const {
    throw core::Error("invalid_spec",
                      fmt::format("{}: expected {} at character {}", quoted_gspmd(text_), expected, at_ + 1));
  }

  /// Spaces and comments: XLA prints {/*index=5*/replicated} in long lists.
  void space() {
    while (at_ < text_.size()) {
      if (text_[at_] == ' ') {
        ++at_;
      } else if (text_.substr(at_, 2) == "/*") {
        const size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) wrong("the end of the comment that begins");
        at_ = end + 2;
      } else {
        return;
      }
    }
  }

  bool accept(char c) {
    space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) wrong("'" + std::string(1, c) + "'");
  }

  std::string word() {
    space();
    const size_t begin = at_;
    while (at_ < text_.size() && ((text_[at_] >= 'a' && text_[at_] <= 'z') || text_[at_] == '_')) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  int64_t number() {
    space();
    int64_t value = 0;
    const size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = value * 10 + (text_[at_] - '0');
      if (value > kMaxAxisSize) wrong(fmt::format("a number up to {}", kMaxAxisSize));
    }
    if (at_ == begin) wrong("a number");
    return value;
  }

  std::vector<int64_t> numbers(char open, char close) {
    std::vector<int64_t> out;
    expect(open);
    do {
      if (static_cast<int64_t>(out.size()) == kMaxRank) wrong(fmt::format("at most {} dimensions", kMaxRank));
      out.push_back(number());
    } while (accept(','));
    expect(close);
    return out;
  }

  /// Behind its '{', up to and with its '}'.
  GspmdWords one() {
    GspmdWords out;
    while (!accept('}')) {
      const size_t begin = at_;
      const std::string name = word();
      if (name == "replicated" || name == "maximal" || name == "manual" || name == "unknown" || name == "unreduced") {
        out.kinds.push_back(name);
      } else if (name == "device") {
        expect('=');
        out.device.push_back(number());
      } else if (name == "devices" && out.tile.empty()) {
        expect('=');
        tiles(out);
      } else if (name == "last_tile_dim_replicate" && out.groups.empty()) {
        out.groups.emplace_back("replicated");
      } else if (name == "last_tile_dims" && out.groups.empty()) {
        expect('=');
        subgroups(out);
      } else if (name == "shard_as" || name == "shard_like") {
        const bool minus = accept('-');
        out.alike.push_back(minus ? -number() : number());
      } else if (name == "metadata") {
        expect('=');
        metadata();
      } else if (name == "mesh" || name == "maximal_mesh") {
        throw core::Error("unsupported_attribute", quoted_gspmd(text_) +
                                                       ": a sharding that names a mesh is supported as sdy.sharding, "
                                                       "not inside of mhlo.sharding");
      } else {
        at_ = begin;
        wrong(
            "replicated, maximal, manual, unknown, unreduced, device=, devices=, last_tile_dim_replicate or "
            "last_tile_dims= (once each), shard_as, shard_like, metadata= or '}'");
      }
    }
    return out;
  }

  void tiles(GspmdWords& out) {
    out.tile = numbers('[', ']');
    if (accept('<')) {
      expect('=');
      out.reshape = numbers('[', ']');
      if (accept('T')) out.transpose = numbers('(', ')');
      return;
    }
    do out.devices.push_back(number());
    while (accept(','));
  }

  void subgroups(GspmdWords& out) {
    expect('{');
    if (accept('}')) return;
    do {
      if (static_cast<int64_t>(out.groups.size()) == kMaxRank) wrong(fmt::format("at most {} subgroups", kMaxRank));
      const size_t begin = at_;
      out.groups.push_back(word());
      if (out.groups.back().empty()) {
        at_ = begin;
        wrong("manual, replicated or unreduced");
      }
    } while (accept(','));
    expect('}');
  }

  /// {op_name="a" source_line=3}, or several of them in braces: read over.
  void metadata() {
    expect('{');
    for (int depth = 1; depth > 0; ++at_) {
      if (at_ >= text_.size()) wrong("'}' behind the metadata");
      const char c = text_[at_];
      if (c == '{') ++depth;
      if (c == '}') --depth;
      if (c != '"') continue;
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
        if (text_[at_] == '\\') ++at_;
      }
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

/// Reads protocol buffers' wire format as far as OpSharding needs it.
class Bytes {
 public:
  Bytes(std::string_view bytes, size_t base) : bytes_(bytes), base_(base) {}

  [[nodiscard]] bool done() const { return at_ == bytes_.size(); }

  [[noreturn]] void wrong(const std::string& expected) const {
    throw core::Error("invalid_spec", fmt::format("sharding in wire form (OpSharding): expected {} at byte {}",
                                                  expected, base_ + at_ + 1));
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (done()) wrong("the rest of a number");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<uint64_t>(byte & 0x7FU) << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    wrong("a number of at most ten bytes");
  }

  Bytes part() {
    const uint64_t size = varint();
    if (size > bytes_.size() - at_) wrong(fmt::format("{} bytes more, there are {}", size, bytes_.size() - at_));
    const Bytes out(bytes_.substr(at_, static_cast<size_t>(size)), base_ + at_);
    at_ += static_cast<size_t>(size);
    return out;
  }

  /// A repeated number, packed (wire type 2) or one of it.
  void numbers(uint64_t wire, std::vector<int64_t>& out) {
    Bytes packed = wire == 2 ? part() : Bytes({}, base_ + at_);
    if (wire != 2) out.push_back(number());
    while (!packed.done()) out.push_back(packed.number());
  }

  int64_t number() {
    const auto value = static_cast<int64_t>(varint());
    if (value > kMaxAxisSize || value < -kMaxAxisSize) wrong(fmt::format("a number up to {}", kMaxAxisSize));
    return value;
  }

  void skip(uint64_t wire) {
    if (wire == 0) {
      varint();
    } else if (wire == 2) {
      part();
    } else if (wire == 1 || wire == 5) {
      const size_t size = wire == 1 ? 8 : 4;
      if (bytes_.size() - at_ < size) wrong(fmt::format("{} bytes more", size));
      at_ += size;
    } else {
      wrong(fmt::format("a field of wire type 0, 1, 2 or 5, not {}", wire));
    }
  }

 private:
  std::string_view bytes_;
  size_t base_;  ///< offset of bytes_ in the message
  size_t at_ = 0;
};

/// OpSharding.Type by number.
const char* kind_word(int64_t type) {
  constexpr const char* kWords[] = {"replicated", "maximal", "tuple", "other", "manual", "unknown", "unreduced"};
  return type >= 0 && type < 7 ? kWords[type] : nullptr;
}

// Numbers of the fields: xla/xla_data.proto, message OpSharding.
std::vector<GspmdWords> op_sharding(Bytes in, bool inside) {
  GspmdWords words;
  std::vector<GspmdWords> tuple;
  int64_t type = 0;
  bool grouped = false;
  int64_t group = 0;
  std::vector<int64_t> subgroups;
  bool last_replicated = false;
  while (!in.done()) {
    const uint64_t tag = in.varint();
    const uint64_t wire = tag & 7U;
    const uint64_t field = tag >> 3U;
    const bool whole = wire == 0;
    if (field == 1 && whole) {
      type = in.number();
      if (kind_word(type) == nullptr) in.wrong(fmt::format("a kind of sharding from 0 to 6, not {}", type));
    } else if (field == 3) {
      in.numbers(wire, words.tile);
    } else if (field == 4) {
      in.numbers(wire, words.devices);
    } else if (field == 5 && wire == 2) {
      if (inside) in.wrong("no tuple of shardings inside of another");
      if (tuple.size() == kMaxShardings) in.wrong(fmt::format("at most {} shardings", kMaxShardings));
      tuple.push_back(op_sharding(in.part(), true).at(0));
    } else if (field == 6 && whole) {
      last_replicated = in.varint() != 0;
    } else if (field == 8) {
      in.numbers(wire, subgroups);
    } else if (field == 9) {
      in.numbers(wire, words.reshape);
    } else if (field == 10) {
      in.numbers(wire, words.transpose);
    } else if (field == 11 && whole) {
      grouped = in.varint() != 0;
    } else if (field == 12 && whole) {
      group = in.number();
    } else if (field == 14) {
      throw core::Error("unsupported_attribute",
                        "a sharding that names a mesh is supported as sdy.sharding, not inside of mhlo.sharding");
    } else {
      in.skip(wire);
    }
  }
  const std::string kind = kind_word(type);
  if (kind == "tuple" && !inside) return tuple;
  if (kind == "tuple") in.wrong("no tuple of shardings inside of another");
  if (kind != "other") words.kinds.push_back(kind);
  if (kind == "maximal") std::swap(words.device, words.devices);
  if (kind == "maximal") words.tile.clear();
  for (const int64_t subgroup : subgroups) {
    const char* word = kind_word(subgroup);
    words.groups.emplace_back(word == nullptr ? std::to_string(subgroup) : word);
  }
  if (last_replicated && words.groups.empty()) words.groups.emplace_back("replicated");
  if (grouped) words.alike.push_back(group);
  return {std::move(words)};
}

}  // namespace

std::string quoted_gspmd(std::string_view text) {
  return "sharding \"" + std::string(text.substr(0, kShownCharacters)) + (text.size() > kShownCharacters ? "..." : "") +
         "\"";
}

std::string in_brackets(const std::vector<int64_t>& numbers) {
  constexpr size_t kShown = 16;
  std::string out = "[";
  for (size_t i = 0; i < std::min(numbers.size(), kShown); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(numbers[i]);
  }
  return out + (numbers.size() > kShown ? ",...]" : "]");
}

std::vector<GspmdWords> read_gspmd_text(std::string_view text) { return Reader(text).all(); }

std::vector<GspmdWords> read_gspmd_bytes(std::string_view bytes) { return op_sharding(Bytes(bytes, 0), false); }

}  // namespace meshd::program
