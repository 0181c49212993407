#include "api/app/serving/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace meshd::api {
namespace {

/// Version 1 writes "no limit" as the largest multiple of a page.
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max() / 4096 * 4096;

/// The number in a file; nothing where the file is missing or contains "max".
int64_t limit_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string text;
  int64_t limit = 0;
  if (!(in >> text)) return kNoLimit;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  return error == std::errc{} && end == text.data() + text.size() ? limit : kNoLimit;
}

/// The least limit from `group` up to `mount`; the group's path may be one that the process does not see.
int64_t least_limit(const std::filesystem::path& mount, std::string_view group, const char* file) {
  int64_t least = kNoLimit;
  for (std::filesystem::path at = std::filesystem::path(group).relative_path();; at = at.parent_path()) {
    least = std::min(least, limit_in(mount / at / file));
    if (at.empty()) return least;
  }
}

}  // namespace

int64_t cgroup_memory_limit(const CgroupPaths& paths) {
  int64_t least = kNoLimit;
  std::ifstream in(paths.process);
  for (std::string line; std::getline(in, line);) {
    // hierarchy:controllers:path; version 2 has number 0 and no controllers.
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const std::string_view group = std::string_view(line).substr(second + 1);
    if (line.starts_with("0::")) {
      least = std::min(least, least_limit(paths.groups, group, "memory.max"));
    } else if (("," + std::string(controllers) + ",").find(",memory,") != std::string::npos) {
      least = std::min(least, least_limit(paths.groups / "memory", group, "memory.limit_in_bytes"));
    }
  }
  return least == kNoLimit ? 0 : least;
}

int64_t available_memory() {
  const int64_t machine = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const int64_t group = cgroup_memory_limit();
  return group > 0 ? std::min(group, machine) : machine;
}

}  // namespace meshd::api
