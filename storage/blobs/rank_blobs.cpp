#include "storage/blobs/rank_blobs.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace meshd::storage {
namespace {

constexpr std::string_view kRank = ".rank";
constexpr std::string_view kRanks = "ranks";

// The number that a text is, if it is one above 0 in its usual form.
int number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size() && !text.empty() && text[0] != '0';
  return is_whole && number > 0 ? number : 0;
}

bool has_entry(FileSystem& files, const std::string& folder, std::string_view name) {
  const std::vector<FolderEntry> entries = files.list(folder);
  return std::any_of(entries.begin(), entries.end(),
                     [&](const FolderEntry& entry) { return entry.is_folder && entry.name == name; });
}

std::string ranks_folder(const std::string& data_folder) { return fmt::format("{}/{}", data_folder, kRanks); }

std::optional<std::string> find_mesh(FileSystem& files, const std::string& folder) {
  const std::unique_ptr<File> file = files.open(folder + "/mesh");
  if (file == nullptr) return std::nullopt;
  std::string name(static_cast<size_t>(file->size()), '\0');
  name.resize(file->read_at(0, std::as_writable_bytes(std::span(name))));
  return name;
}

}  // namespace

int blob_rank(std::string_view name) {
  const size_t at = name.rfind(kRank);
  return at == std::string_view::npos ? 0 : number_of(name.substr(at + kRank.size()));
}

std::string rank_blob_name(std::string name, int rank) { return fmt::format("{}{}{}", std::move(name), kRank, rank); }

std::string rank_folder(const std::string& data_folder, int rank) {
  return fmt::format("{}/{}", ranks_folder(data_folder), rank);
}

std::string name_of_mesh(FileSystem& files, const std::string& data_folder, int rank, const std::string& name) {
  const std::string folder = rank_folder(data_folder, rank);
  if (auto given = find_mesh(files, folder)) return std::move(*given);
  make_durable_folder(files, data_folder);
  files.make_folder(ranks_folder(data_folder));
  files.sync_folder(data_folder);
  files.make_folder(folder);
  files.sync_folder(ranks_folder(data_folder));
  const std::string unfinished = folder + "/mesh.new";
  files.unlink(unfinished);
  const std::unique_ptr<File> file = files.create(unfinished);
  file->write_at(0, std::as_bytes(std::span(name)));
  file->sync();
  files.rename(unfinished, folder + "/mesh");
  files.sync_folder(folder);
  return name;
}

RankFolders::RankFolders(FileSystem& files, const std::string& data_folder, const RankBlobs* others) {
  const std::optional<std::string> mesh = find_mesh(files, rank_folder(data_folder, 0));
  if (!mesh) return;
  for (const FolderEntry& entry : files.list(ranks_folder(data_folder))) {
    const int rank = entry.is_folder ? number_of(entry.name) : 0;
    if (rank == 0 || (others != nullptr && others->has_rank(rank))) continue;
    const std::string folder = rank_folder(data_folder, rank);
    if (find_mesh(files, folder) != mesh || !has_entry(files, folder, "blobs")) continue;
    // Nothing is written here: no sync can fail.
    stores_.emplace_back(rank, std::make_unique<BlobStore>(files, folder + "/blobs", [](const std::string&) {}));
  }
}

RankFolders::~RankFolders() = default;

bool RankFolders::has_rank(int rank) const {
  return std::any_of(stores_.begin(), stores_.end(), [&](const auto& entry) { return entry.first == rank; });
}

std::vector<StoredBlob> RankFolders::list() {
  std::vector<StoredBlob> out;
  for (const auto& [rank, store] : stores_) {
    for (StoredBlob& blob : store->list()) {
      if (blob_rank(blob.name) == rank) out.push_back(std::move(blob));
    }
  }
  return out;
}

std::unique_ptr<File> RankFolders::open(const std::string& name) {
  for (const auto& [rank, store] : stores_) {
    if (blob_rank(name) == rank) return store->open_file(name);
  }
  return nullptr;
}

int64_t RankFolders::remove(std::span<const std::string> names) {
  int64_t removed = 0;
  for (const auto& [rank, store] : stores_) {
    std::vector<std::string> own;
    std::copy_if(names.begin(), names.end(), std::back_inserter(own),
                 [&, owner = rank](const std::string& name) { return blob_rank(name) == owner; });
    removed += store->remove_unnamed(own, [](const std::string&) { return false; });
  }
  return removed;
}

}  // namespace meshd::storage
