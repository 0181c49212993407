// Values as bytes and back: one function for each type, `archive(a, value)`, which a writer and a reader share, so that
// what is written and what is read cannot differ. A struct's function is in this namespace too, where the
// functions of containers find it (by the archive, which is of this namespace). Numbers are little-endian. What is read
// is not believed: counts are held to the bytes that are left, and nesting is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "service/core/error.h"

namespace meshd::warmup {

/// What a damaged text throws.
[[noreturn]] inline void throw_damaged(const char* what) {
  throw core::Error("internal", std::string("a record is damaged: ") + what);
}

/// Appends to a text.
class ByteWriter {
 public:
  static constexpr bool kReads = false;

  void bytes(void* from, size_t count) { out_.append(static_cast<const char*>(from), count); }
  /// As many items follow.
  void count(size_t& items) {
    auto number = static_cast<uint64_t>(items);
    bytes(&number, sizeof(number));
  }
  struct Depth {
    explicit Depth(ByteWriter& /*writer*/) {}
  };
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Takes from a text, which must outlive it. Throws internal where that is too short.
class ByteReader {
 public:
  static constexpr bool kReads = true;

  explicit ByteReader(std::string_view in) : in_(in) {}
  void bytes(void* to, size_t count) {
    if (count > in_.size()) throw_damaged("it ends early");
    std::memcpy(to, in_.data(), count);
    in_.remove_prefix(count);
  }
  /// Every item takes a byte or more.
  void count(size_t& items) {
    uint64_t number = 0;
    bytes(&number, sizeof(number));
    if (number > in_.size()) throw_damaged("a count exceeds what is there");
    items = number;
  }
  /// Held while something nested is read.
  class Depth {
   public:
    explicit Depth(ByteReader& reader) : reader_(reader) {
      if (++reader_.depth_ > kDeepest) throw_damaged("it is nested too deeply");
    }
    ~Depth() { --reader_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    ByteReader& reader_;
  };
  [[nodiscard]] bool is_at_end() const { return in_.empty(); }

 private:
  static constexpr int kDeepest = 200;
  std::string_view in_;
  int depth_ = 0;
};

template <typename Archive, typename T>
requires std::is_arithmetic_v<T>
void archive(Archive& a, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    auto byte = static_cast<uint8_t>(value);
    a.bytes(&byte, 1);
    if (byte > 1) throw_damaged("a flag is neither 0 nor 1");
    value = byte == 1;
  } else {
    a.bytes(&value, sizeof(value));
  }
}

/// Fields, one after the other.
template <typename Archive, typename... Fields>
void archive_all(Archive& a, Fields&... fields) {
  (archive(a, fields), ...);
}

/// An enumeration whose last value is `last`.
template <typename Archive, typename T>
void archive_enum(Archive& a, T& value, T last) {
  auto number = static_cast<uint8_t>(value);
  a.bytes(&number, 1);
  if (number > static_cast<uint8_t>(last)) throw_damaged("a number is out of its range");
  value = static_cast<T>(number);
}

template <typename Archive>
void archive(Archive& a, std::string& value) {
  size_t size = value.size();
  a.count(size);
  if constexpr (Archive::kReads) value.resize(size);
  a.bytes(value.data(), size);
}

template <typename Archive, typename T>
void archive(Archive& a, std::vector<T>& values) {
  size_t size = values.size();
  a.count(size);
  if constexpr (Archive::kReads) {
    for (size_t i = 0; i < size; ++i) archive(a, values.emplace_back());
  } else {
    for (T& value : values) archive(a, value);
  }
}

template <typename Archive, typename First, typename Second>
void archive(Archive& a, std::pair<First, Second>& value) {
  archive(a, value.first);
  archive(a, value.second);
}

template <typename Archive, typename T>
void archive(Archive& a, std::optional<T>& value) {
  bool is_there = value.has_value();
  archive(a, is_there);
  if (!is_there) return;
  if constexpr (Archive::kReads) value.emplace();
  archive(a, *value);
}

template <typename Archive>
void archive(Archive& /*a*/, std::monostate& /*nothing*/) {}

/// Alternatives by their numbers, from `kAt` on.
template <typename Archive, size_t kAt = 0, typename... Types>
void archive_alternative(Archive& a, std::variant<Types...>& value, size_t index) {
  if constexpr (kAt < sizeof...(Types)) {
    if (index != kAt) return archive_alternative<Archive, kAt + 1>(a, value, index);
    if constexpr (Archive::kReads) value.template emplace<kAt>();
    archive(a, std::get<kAt>(value));
  } else {
    throw_damaged("a kind is not known");
  }
}

template <typename Archive, typename... Types>
void archive(Archive& a, std::variant<Types...>& value) {
  auto index = static_cast<uint8_t>(value.index());
  a.bytes(&index, 1);
  archive_alternative(a, value, index);
}

template <typename Archive, typename Key, typename T>
void archive(Archive& a, std::map<Key, T>& values) {
  size_t size = values.size();
  a.count(size);
  if constexpr (Archive::kReads) {
    for (size_t i = 0; i < size; ++i) {
      Key key{};
      archive(a, key);
      archive(a, values[key]);
    }
  } else {
    for (auto& [key, value] : values) {
      Key copy = key;
      archive(a, copy);
      archive(a, value);
    }
  }
}

}  // namespace meshd::warmup
