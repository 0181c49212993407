// Text as a template argument, so that a row's infer function has its op's name and an example can be concatenated at
// compile time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace meshd::ops {

/// A string literal as a template argument: check_pointwise<"add">.
template <size_t kSize>
struct FixedString {
  std::array<char, kSize> text{};
  // Not explicit: a literal must convert to a template argument implicitly.
  constexpr FixedString(const char (&literal)[kSize]) { std::copy_n(literal, kSize, text.begin()); }
  [[nodiscard]] constexpr std::string_view view() const { return {text.data(), kSize - 1}; }
};

/// Joins literals at compile time; `view` has static storage.
template <FixedString... kParts>
struct Joined {
  static constexpr size_t kLength = (kParts.view().size() + ... + 0);
  static constexpr std::array<char, kLength + 1> kText = [] {
    std::array<char, kLength + 1> out{};
    auto at = out.begin();
    ((at = std::copy(kParts.view().begin(), kParts.view().end(), at)), ...);
    return out;
  }();
  static constexpr std::string_view view{kText.data(), kLength};
};

/// The mnemonic of a full name: "stablehlo.add" -> "add". Messages label constraints with it, as the specification
/// does.
constexpr std::string_view mnemonic(std::string_view name) {
  const size_t dot = name.find('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

}  // namespace meshd::ops
