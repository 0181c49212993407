#include "service/jobs/admission/call_plan.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"

namespace meshd::jobs::call_plan {
namespace {

std::string listed(const std::vector<int64_t>& values) {
  std::string out = "(";
  for (size_t i = 0; i < values.size(); ++i) out += fmt::format("{}{}", i ? ", " : "", values[i]);
  return out + ")";
}

}  // namespace

std::string only_positional(int64_t count) {
  return count == 1
             ? "is only 1 positional argument, and static arguments must be passed positionally"
             : fmt::format("are only {} positional arguments, and static arguments must be passed positionally", count);
}

std::vector<int64_t> rebase_donation(std::vector<int64_t> donated, const std::vector<int64_t>& statics, int64_t count) {
  const auto is_wrong = [&](int64_t position) { return position < 0 || position >= count; };
  if (std::any_of(donated.begin(), donated.end(), is_wrong) || std::any_of(statics.begin(), statics.end(), is_wrong)) {
    throw core::Error("invalid_argument", fmt::format("static arguments {} and donated arguments {}, but there {}",
                                                      listed(statics), listed(donated), only_positional(count)));
  }
  std::vector<int64_t> taken = statics;
  std::sort(taken.begin(), taken.end());
  for (const int64_t position : donated) {
    if (std::binary_search(taken.begin(), taken.end(), position)) {
      throw core::Error("invalid_argument", fmt::format("static arguments {} and donated arguments {} cannot intersect",
                                                        listed(statics), listed(donated)));
    }
  }
  std::sort(donated.begin(), donated.end());
  donated.erase(std::unique(donated.begin(), donated.end()), donated.end());
  for (int64_t& position : donated) position -= std::lower_bound(taken.begin(), taken.end(), position) - taken.begin();
  return donated;
}

std::vector<bool> donation_vector(const std::vector<int64_t>& donated, const std::vector<int64_t>& leaves,
                                  int64_t keyword_leaves) {
  std::vector<bool> out;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const bool is_donated = std::binary_search(donated.begin(), donated.end(), static_cast<int64_t>(i));
    out.insert(out.end(), static_cast<size_t>(leaves[i]), is_donated);
  }
  out.insert(out.end(), static_cast<size_t>(keyword_leaves), false);
  return out;
}

}  // namespace meshd::jobs::call_plan
