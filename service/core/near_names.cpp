#include "service/core/near_names.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace meshd::core {

size_t edit_distance(std::string_view a, std::string_view b) {
  // Rows i - 2, i - 1 and i of the table: entry j is the distance of the first i characters of a and the first j of b.
  std::vector<size_t> older(b.size() + 1);
  std::vector<size_t> old(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(older, old);
    std::swap(old, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({row[j - 1] + 1, old[j] + 1, old[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], older[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string did_you_mean(std::string_view name, char quote) {
  if (name.empty()) return {};
  return std::string("; did you mean ") + quote + std::string(name) + quote + "?";
}

}  // namespace meshd::core
