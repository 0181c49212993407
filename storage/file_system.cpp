#include "storage/file_system.h"

#include <filesystem>
#include <system_error>

namespace meshd::storage {
namespace {

std::string parent_of(const std::string& path) {
  std::filesystem::path plain(path);
  if (!plain.has_filename()) plain = plain.parent_path();  // "a/b/"
  return plain.has_parent_path() ? plain.parent_path().string() : ".";
}

}  // namespace

void make_durable_folder(FileSystem& files, const std::string& path) {
  std::error_code unreadable;
  if (std::filesystem::exists(path, unreadable)) return;
  files.make_folder(path);
  files.sync_folder(parent_of(path));
}

}  // namespace meshd::storage
