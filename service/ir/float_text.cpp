#include "service/ir/float_text.h"

#include <array>
#include <charconv>

namespace meshd::ir {
namespace {

template <typename Float>
std::string scientific(Float value) {
  std::array<char, 40> digits;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::scientific).ptr;
  std::string out(digits.data(), end);
  const size_t exponent = out.find('e');
  if (exponent != std::string::npos && out.find('.') == std::string::npos) out.insert(exponent, ".0");
  return out;
}

}  // namespace

std::string float_text(double value) { return scientific(value); }
std::string float_text(float value) { return scientific(value); }

}  // namespace meshd::ir
