// Base64 both ways, and what is none.
#include "api/codecs/base64.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace meshd::api {
namespace {

std::optional<std::vector<std::byte>> decoded(std::string_view text) {
  const auto size = base64_size(text);
  if (!size) return std::nullopt;
  std::vector<std::byte> out(static_cast<size_t>(*size));
  return base64_decode(text, out) ? std::optional(out) : std::nullopt;
}

TEST(Base64, bytes_come_back) {
  std::mt19937 random(3);
  for (size_t size = 0; size < 200; ++size) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    EXPECT_EQ(decoded(base64_encode(bytes)), bytes) << size;
  }
}

TEST(Base64, long_texts_are_made_of_whole_groups) {
  std::mt19937 random(5);
  for (const size_t size : {3070U, 3071U, 3072U, 3073U, 6143U, 6144U, 6145U, 100'000U}) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    std::string text = "\"";
    append_base64(text, bytes);
    EXPECT_EQ(text.size(), 1 + (size + 2) / 3 * 4);
    EXPECT_EQ(decoded(std::string_view(text).substr(1)), bytes) << size;
  }
}

TEST(Base64, text_with_one_wrong_character_is_refused_wherever_it_stands) {
  // Some are long enough to be read in vectors, with a rest.
  const std::string many = "QUJDabc019+/zZyYxX88AAaaZZzz99++//0123456789abcdefghijklmnopqrstuvwxyz+/";
  for (const std::string& text : {std::string("AbC+9/zZ0000"), std::string("AbC+9/zZ00A="), std::string("AbC+9/zZ0A=="),
                                  many, many + many, many + many + "A0=="}) {
    ASSERT_TRUE(decoded(text));
    for (size_t i = 0; i < text.size() && text[i] != '='; ++i) {
      for (int c = 0; c < 256; ++c) {
        std::string other = text;
        other[i] = static_cast<char>(c);
        const bool is_digit = std::isalnum(c) != 0 || c == '+' || c == '/';
        if (is_digit || (c == '=' && i + 2 >= text.size())) continue;
        EXPECT_FALSE(decoded(other)) << other;
      }
    }
  }
  for (const char* text : {"A", "AB", "ABC", "ABCDE", "A===", "====", "=ABC", "AB=C"})
    EXPECT_FALSE(decoded(text)) << text;
}

}  // namespace
}  // namespace meshd::api
