// Seeded damage to texts: what the fuzzers and the mutation tests feed to parsers. The same seed gives the same text
// everywhere.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace meshd::testing {

/// Cuts, copies, swaps and replaces pieces of texts. One thread.
class Mutator {
 public:
  /// `words` are pieces that the format is made of, put in now and then.
  Mutator(uint64_t seed, std::vector<std::string> words) : random_(seed), words_(std::move(words)) {}

  /// `text` with one to eight wounds; `other` is a text to take pieces from.
  std::string mutate(std::string text, std::string_view other) {
    const int wounds = 1 + static_cast<int>(below(8));
    for (int i = 0; i < wounds; ++i) wound(text, other);
    return text;
  }

 private:
  uint64_t below(uint64_t bound) { return bound == 0 ? 0 : random_() % bound; }

  void wound(std::string& text, std::string_view other) {
    const size_t at = below(text.size() + 1);
    const size_t length = std::min<size_t>(1 + below(below(4) == 0 ? 400 : 12), text.size() - at);
    switch (below(9)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        if (!other.empty()) {
          const size_t from = below(other.size());
          text.insert(at, other.substr(from, 1 + below(200)));
        }
        break;
      case 4:
      case 5:
        if (!words_.empty()) text.replace(at, length, words_[below(words_.size())]);
        break;
      case 6:
        number(text, at);
        break;
      case 7:
        if (!words_.empty()) {
          const std::string& word = words_[below(words_.size())];
          for (uint64_t n = below(300); n > 0 && text.size() < (1U << 20); --n) text.insert(at, word);
        }
        break;
      default: {
        // Two places of the text change their content.
        const size_t there = below(text.size() + 1);
        const std::string piece = text.substr(there, length);
        if (at + piece.size() <= text.size()) text.replace(at, piece.size(), piece);
      }
    }
  }

  /// Replaces the next number behind `at` by an awkward one.
  void number(std::string& text, size_t at) {
    static constexpr std::string_view kAwkward[] = {"0",
                                                    "-1",
                                                    "1",
                                                    "2",
                                                    "9223372036854775807",
                                                    "9223372036854775808",
                                                    "-9223372036854775808",
                                                    "18446744073709551615",
                                                    "4294967296",
                                                    "2147483648",
                                                    "65537",
                                                    "0x7FC00000",
                                                    "1.0e400"};
    const size_t begin = text.find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    const size_t end = text.find_first_not_of("0123456789", begin);
    text.replace(begin, (end == std::string::npos ? text.size() : end) - begin, kAwkward[below(std::size(kAwkward))]);
  }

  std::mt19937_64 random_;
  std::vector<std::string> words_;
};

/// Pieces of StableHLO text.
inline std::vector<std::string> stablehlo_words() {
  return {"{",
          "}",
          "(",
          ")",
          "[",
          "]",
          "<",
          ">",
          ",",
          "->",
          ":",
          "=",
          "?",
          "-",
          "\"",
          "#",
          "@",
          "%",
          "%0",
          "%arg0",
          "%0#1",
          "#loc",
          "loc(",
          "dense<",
          "tensor<",
          "xf32>",
          "x",
          "0x",
          "complex<",
          "array<i64: ",
          "\n",
          "{-#",
          "#-}",
          "module",
          "sdy.mesh",
          "func.func",
          "^bb0(%a: tensor<f32>):",
          "stablehlo.return",
          "stablehlo.add",
          "stablehlo.while(",
          "call @main(",
          "#sdy.sharding<@mesh, [{\"x\"}]>",
          "\"x\":(1)2",
          "tuple<",
          "!stablehlo.token",
          "dense<1.0> : tensor<8x16xf32>",
          "dense<[[1, 2]]> : tensor<1x2xi64>",
          "dense_resource<r> : tensor<4xf32>",
          "tensor<9223372036854775807x2xf32>",
          "sdy.manual_computation",
          "\"stablehlo.reduce_window\"",
          "<{dimension = 0 : i64}>",
          "in_shardings=[",
          "mesh<[\"x\"=2]>",
          "replicated={\"x\"}",
          "unreduced=max{\"y\"}"};
}

}  // namespace meshd::testing
