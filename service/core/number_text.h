// Numbers as people read them.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace meshd::core {

/// 2095104 -> "2,095,104".
inline std::string grouped_number(int64_t value) {
  std::string digits = std::to_string(value);
  for (size_t at = digits.size(); at > 3 && digits[at - 4] != '-';) digits.insert(at -= 3, ",");
  return digits;
}
/// The same of a double, as a whole number.
inline std::string grouped_number(double value) { return grouped_number(static_cast<int64_t>(std::llround(value))); }

}  // namespace meshd::core
