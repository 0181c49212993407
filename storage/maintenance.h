// Maintenance of a data folder that no server uses: check it, or restore it from a backup. (Store::backup_to makes
// backups.) Each takes the folder's lock while it works. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/file_system.h"

namespace meshd::storage {

/// What a check found.
struct CheckReport {
  int64_t schema_version = 0;
  bool has_counts = false;  ///< the rows were read; else the numbers below say nothing of them
  int64_t arrays = 0;
  int64_t shards = 0;
  int64_t bytes = 0;    ///< of shards, read and compared with their checksums
  int64_t orphans = 0;  ///< blobs that no row names: the next start removes them, nothing is wrong
  int64_t problem_count = 0;
  std::vector<std::string> problems;  ///< the first kMostProblems, a sentence each
};
inline constexpr size_t kMostProblems = 100;

/// Reads all of it and changes nothing:
///   1. SQLite's integrity_check and foreign_key_check;
///   2. the schema version is this build's; an older one is a problem, because its rows cannot be read;
///   3. each shard's file is there, and every page has its checksum;
///   4. the log of each session is 1..N without a gap.
/// Throws not_found where there is no data, storage_failed where a server uses the folder.
CheckReport check(FileSystem& files, const std::string& folder);

/// Copies a backup to `folder`, every byte, so that the two share no file. What it holds is checked first and returned.
/// Throws storage_failed with the first problem, conflict where `folder` has something in it already, disk_full.
CheckReport restore(FileSystem& files, const std::string& backup, const std::string& folder);

}  // namespace meshd::storage
