#include "api/app/local_commands/data_command.h"

#include <unistd.h>

#include <cstdio>

#include "service/core/clock.h"
#include "service/core/error.h"
#include "storage/maintenance.h"

namespace meshd::api {
namespace {

constexpr double kMegabyte = 1e6;

void print_counts(const storage::CheckReport& report) {
  std::printf("schema: %lld", static_cast<long long>(report.schema_version));
  if (report.has_counts) {
    std::printf(", arrays: %lld, shards: %lld, %.1f MB", static_cast<long long>(report.arrays),
                static_cast<long long>(report.shards), static_cast<double>(report.bytes) / kMegabyte);
  }
  std::printf("\n");
}

}  // namespace

int run_command(const char* name, const std::function<int(storage::FileSystem&)>& command) {
  try {
    return command(*storage::real_file_system());
  } catch (const core::Error& error) {
    std::fprintf(stderr, "meshd %s: %s\n", name, error.detail().c_str());
    if (!error.internal().empty()) std::fprintf(stderr, "  %s\n", error.internal().c_str());
    return 1;
  }
}

std::unique_ptr<storage::Store> open_data(const std::string& folder, storage::FileSystem& files) {
  storage::require_data(folder);
  static const core::SystemClock clock;
  storage::StoreOptions options;
  options.folder = folder;
  options.fatal = [](const std::string& reason) {
    // As in a server: what was written is unknown, so the process ends.
    std::fprintf(stderr, "meshd: %s\n", reason.c_str());
    _exit(3);
  };
  return std::make_unique<storage::Store>(std::move(options), files, clock);
}

int back_up_data(const std::string& folder, const std::string& target) {
  return run_command("backup", [&](storage::FileSystem& files) {
    open_data(folder, files)->backup_to(target);
    std::printf("%s is a copy of %s; meshd fsck --data %s reads all of it\n", target.c_str(), folder.c_str(),
                target.c_str());
    return 0;
  });
}

int restore_data(const std::string& backup, const std::string& folder) {
  return run_command("restore", [&](storage::FileSystem& files) {
    print_counts(storage::restore(files, backup, folder));
    std::printf("%s is what %s was; start a server with --data %s\n", folder.c_str(), backup.c_str(), folder.c_str());
    return 0;
  });
}

int check_data(const std::string& folder) {
  return run_command("fsck", [&](storage::FileSystem& files) {
    const storage::CheckReport report = storage::check(files, folder);
    print_counts(report);
    if (report.orphans > 0) {
      std::printf("files of no array: %lld; the next start removes them\n", static_cast<long long>(report.orphans));
    }
    for (const std::string& problem : report.problems) std::printf("%s\n", problem.c_str());
    if (report.problem_count > static_cast<int64_t>(report.problems.size())) std::printf("...\n");
    std::printf("problems: %lld\n", static_cast<long long>(report.problem_count));
    return report.problem_count == 0 ? 0 : 1;
  });
}

}  // namespace meshd::api
