#include "api/codecs/base64_vectors.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "service/kernels/cpu.h"

namespace meshd::api {
#if defined(__x86_64__)
namespace {

constexpr size_t kVectorChars = 32;
constexpr size_t kVectorBytes = 24;

// Bytes are signed: what is no ASCII is below every character of base64.
using Chars = int8_t __attribute__((vector_size(kVectorChars)));
using Pairs = uint16_t __attribute__((vector_size(kVectorChars)));
using Groups = uint32_t __attribute__((vector_size(kVectorChars)));

bool is_all(const Chars& mask) {
  std::array<int64_t, kVectorChars / sizeof(int64_t)> words{};
  std::memcpy(words.data(), &mask, kVectorChars);
  return (words[0] & words[1] & words[2] & words[3]) == -1;
}

[[gnu::always_inline]] inline size_t decode(std::string_view text, std::span<std::byte> out) {
  size_t from = 0, to = 0;
  for (; from + kVectorChars <= text.size() && to + kVectorChars <= out.size();
       from += kVectorChars, to += kVectorBytes) {
    Chars c;
    std::memcpy(&c, text.data() + from, kVectorChars);
    const Chars upper = (c >= 'A') & (c <= 'Z'), lower = (c >= 'a') & (c <= 'z'), digit = (c >= '0') & (c <= '9');
    const Chars plus = c == '+', slash = c == '/';
    if (!is_all(upper | lower | digit | plus | slash)) break;
    const Chars sextets =
        (upper & (c - 'A')) | (lower & (c - ('a' - 26))) | (digit & (c + (52 - '0'))) | (plus & 62) | (slash & 63);
    // The first character has the highest bits: of two, then of four, which are three bytes from the highest down.
    const auto bytes = reinterpret_cast<Pairs>(sextets);
    const auto pairs = reinterpret_cast<Groups>((bytes & 0x3f) << 6 | bytes >> 8);
    const auto groups = reinterpret_cast<Chars>((pairs & 0xfff) << 12 | pairs >> 16);
    const Chars packed = __builtin_shufflevector(groups, groups, 2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, 18, 17, 16, 22,
                                                 21, 20, 26, 25, 24, 30, 29, 28, 0, 0, 0, 0, 0, 0, 0, 0);
    std::memcpy(out.data() + to, &packed, kVectorChars);
  }
  return from;
}

[[gnu::always_inline]] inline size_t encode(std::span<const std::byte> bytes, char* text) {
  size_t from = 0;
  for (; from + kVectorChars <= bytes.size(); from += kVectorBytes, text += kVectorChars) {
    Chars read;
    std::memcpy(&read, bytes.data() + from, kVectorChars);
    const auto groups = reinterpret_cast<Groups>(__builtin_shufflevector(read, read, 2, 1, 0, 31, 5, 4, 3, 31, 8, 7, 6,
                                                                         31, 11, 10, 9, 31, 14, 13, 12, 31, 17, 16, 15,
                                                                         31, 20, 19, 18, 31, 23, 22, 21, 31));
    const auto sextets = reinterpret_cast<Chars>((groups >> 18 & 0x3f) | (groups >> 4 & 0x3f00) |
                                                 (groups << 10 & 0x3f0000) | (groups << 24 & 0x3f000000));
    // From each range of the alphabet to the next the distance to the character changes.
    const Chars c = sextets + 'A' + ((sextets > 25) & ('a' - 26 - 'A')) + ((sextets > 51) & ('0' - 52 - ('a' - 26))) +
                    ((sextets > 61) & ('+' - 62 - ('0' - 52))) + ((sextets > 62) & ('/' - 63 - ('+' - 62)));
    std::memcpy(text, &c, kVectorChars);
  }
  return from;
}

[[gnu::target("arch=x86-64-v3")]] size_t decode_v3(std::string_view text, std::span<std::byte> out) {
  return decode(text, out);
}

[[gnu::target("arch=x86-64-v3")]] size_t encode_v3(std::span<const std::byte> bytes, char* text) {
  return encode(bytes, text);
}

bool has_v3() {
  static const bool has = kernels::cpu_level() >= kernels::CpuLevel::kV3;
  return has;
}

}  // namespace

size_t decode_base64_vectors(std::string_view text, std::span<std::byte> out) {
  return has_v3() ? decode_v3(text, out) : 0;
}

size_t encode_base64_vectors(std::span<const std::byte> bytes, char* text) {
  return has_v3() ? encode_v3(bytes, text) : 0;
}
#else
size_t decode_base64_vectors(std::string_view, std::span<std::byte>) { return 0; }
size_t encode_base64_vectors(std::span<const std::byte>, char*) { return 0; }
#endif

}  // namespace meshd::api
