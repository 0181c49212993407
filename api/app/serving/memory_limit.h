// The memory limit of the process: of its control group (container), or of the machine. Pure but for reading files.
#pragma once

#include <cstdint>
#include <filesystem>

namespace meshd::api {

/// The kernel's files about control groups; tests use their own.
struct CgroupPaths {
  std::filesystem::path process = "/proc/self/cgroup";  ///< which groups this process is in, a line each
  std::filesystem::path groups = "/sys/fs/cgroup";      ///< where the groups are mounted
};

/// The least memory.max (version 2) or memory.limit_in_bytes (version 1) of the process's memory group and those above
/// it, in bytes; 0 where none is set. A container that sees its own group as the root, as Docker's do, is found too.
/// Example: "0::/a/b", groups/a/memory.max = 1073741824, groups/a/b/memory.max = max -> 1073741824.
int64_t cgroup_memory_limit(const CgroupPaths& paths = {});

/// The smaller of the cgroup's limit and the machine's memory, in bytes.
int64_t available_memory();

}  // namespace meshd::api
