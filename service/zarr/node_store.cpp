#include "service/zarr/node_store.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "service/core/error.h"
#include "service/core/ids.h"

namespace meshd::zarr {
namespace {

constexpr int kRetrySeconds = 5;
constexpr int64_t kPartForFiles = 8;  // of the process's descriptors
constexpr std::chrono::seconds kTouchEvery{1};
constexpr int64_t kPartOfPrincipal = 4;  // of the bytes of pending documents
// A document of what is below a group, while it is made: of each node, and of each byte of attributes as JSON values.
constexpr int64_t kNodeBytes = 8 * 1024;
constexpr int64_t kOfAttributeByte = 24;
constexpr int64_t kPartOfRequest = 2;  // of the memory that all requests may take together

NodeLimits completed(NodeLimits limits) {
  rlimit files{};
  if (limits.most_open_files == 0 && ::getrlimit(RLIMIT_NOFILE, &files) == 0)
    limits.most_open_files = static_cast<int64_t>(std::min<rlim_t>(files.rlim_cur, INT32_MAX)) / kPartForFiles;
  return limits;
}

// The first segment: what is below it expires together.
std::string_view tree_of(std::string_view path) { return path.substr(0, path.find('/')); }

bool is_at_or_below(std::string_view path, std::string_view group) {
  return group.empty() || path == group || (path.starts_with(group) && path[group.size()] == '/');
}

std::string shown(std::string_view path) { return path.empty() ? "the root" : "'" + std::string(path) + "'"; }

void require_not_committing(bool is_committing, std::string_view path) {
  if (is_committing) throw core::Error("conflict", shown(path) + " is being committed");
}

int64_t bytes_of(const PendingNode& node) {
  int64_t out = 0;
  for (const auto& [key, text] : node.documents) out += static_cast<int64_t>(text.size());
  return out + static_cast<int64_t>(node.attributes.size());
}

}  // namespace

/// The nodes of one commit, by path.
struct NodeStore::Committing {
  std::string principal;
  std::vector<std::pair<std::string, PendingNode>> nodes;
};

NodeStore::NodeStore(storage::Store& store, arrays::ArrayStore& arrays, const core::Clock& clock, NodeLimits limits)
    : store_(store),
      arrays_(arrays),
      clock_(clock),
      limits_(completed(limits)),
      files_(limits_.most_open_files, limits_.principals_part_of_files) {}

std::optional<PendingNode> NodeStore::find_pending(std::string_view principal, std::string_view path, int format) {
  return table_.with([&](const Table& table) -> std::optional<PendingNode> {
    const auto found = table.nodes.find({std::string(principal), std::string(path)});
    if (found == table.nodes.end() || found->second.node.format != format) return std::nullopt;
    return found->second.node;
  });
}

std::shared_ptr<ChunkedArray> NodeStore::find_chunked(std::string_view principal, std::string_view path, int format) {
  const core::SteadyTime now = clock_.steady();
  std::vector<std::shared_ptr<ChunkedArray>> siblings;
  auto out = table_.with([&](Table& table) -> std::shared_ptr<ChunkedArray> {
    const auto found = table.nodes.find({std::string(principal), std::string(path)});
    if (found == table.nodes.end() || found->second.node.format != format) return nullptr;
    auto array = found->second.node.array;
    if (array == nullptr || now - found->second.touched < kTouchEvery) return array;
    const std::string tree(tree_of(path));
    for (auto at = table.nodes.lower_bound({std::string(principal), tree});
         at != table.nodes.end() && at->first.first == principal && at->first.second.starts_with(tree); ++at) {
      if (tree_of(at->first.second) != tree) continue;
      at->second.touched = now;
      if (at->second.node.array != nullptr) siblings.push_back(at->second.node.array);
    }
    return array;
  });
  if (out == nullptr) {
    throw core::Error("conflict", fmt::format("no array is pending at {}: PUT its {} first; a restart forgets what was "
                                              "not committed",
                                              shown(path), format == 3 ? "zarr.json" : ".zarray"));
  }
  for (const auto& sibling : siblings) sibling->note_progress();
  return out;
}

FileCharge NodeStore::charge_files(const std::string& principal, int64_t files) {
  return files_.charge(principal, files);
}

void NodeStore::add(Table& table, const std::string& principal, int64_t nodes, int64_t bytes) {
  const auto sum = table.by_principal.try_emplace(principal).first;
  for (Sum* each : {&table.all, &sum->second}) {
    each->nodes += nodes;
    each->bytes += bytes;
  }
  if (sum->second.nodes == 0) table.by_principal.erase(sum);
}

NodeStore::Nodes::iterator NodeStore::erase(Table& table, Nodes::iterator entry) {
  add(table, entry->first.first, -1, -bytes_of(entry->second.node));
  return table.nodes.erase(entry);
}

void NodeStore::put(const std::string& principal, const std::string& path, int format, NodeDocument document) {
  std::shared_ptr<ChunkedArray> before;  // ends without the lock
  table_.with([&](Table& table) {
    const auto sum = table.by_principal.find(principal);
    const auto [nodes, own_bytes] = sum == table.by_principal.end() ? Sum{} : sum->second;
    const auto found = table.nodes.find({principal, path});
    if (found != table.nodes.end()) require_not_committing(found->second.is_committing, path);
    if (found == table.nodes.end() && nodes >= limits_.most_nodes) {
      throw core::Error("limit_reached", fmt::format("{} Zarr groups and arrays are pending, which is all that one "
                                                     "principal may have; commit them",
                                                     nodes))
          .with_retry_after(kRetrySeconds);
    }
    const auto more = static_cast<int64_t>(document.text.size());
    if (own_bytes + more > limits_.most_document_bytes / kPartOfPrincipal) {
      throw core::Error("limit_reached", fmt::format("documents of pending Zarr groups and arrays have {} bytes, which "
                                                     "is all that one principal's may have; commit them",
                                                     own_bytes))
          .with_retry_after(kRetrySeconds);
    }
    if (table.all.bytes + more > limits_.most_document_bytes) {
      throw core::Error("overloaded", "documents of pending Zarr nodes fill the memory that there is for them")
          .with_retry_after(kRetrySeconds);
    }
    Entry& entry = table.nodes[{principal, path}];
    PendingNode& node = entry.node;
    const int64_t bytes_before = bytes_of(node);
    entry.touched = clock_.steady();
    const bool is_other = node.format != format || (node.kind != NodeKind::kUnknown &&
                                                    document.kind != NodeKind::kUnknown && node.kind != document.kind);
    if (is_other) {
      before = std::move(node.array);
      node = {};
    }
    node.format = format;
    if (document.kind != NodeKind::kUnknown) node.kind = document.kind;
    if (document.array != nullptr && document.array != node.array) {
      before = std::exchange(node.array, std::move(document.array));
    }
    if (document.attributes) node.attributes = std::move(*document.attributes);
    node.documents[document.key] = std::move(document.text);
    add(table, principal, found == table.nodes.end() ? 1 : 0, bytes_of(node) - bytes_before);
  });
}

bool NodeStore::drop(std::string_view principal, std::string_view path, int format, const std::string& key) {
  std::shared_ptr<ChunkedArray> before;
  return table_.with([&](Table& table) {
    const auto found = table.nodes.find({std::string(principal), std::string(path)});
    if (found == table.nodes.end() || found->second.node.format != format) return false;
    PendingNode& node = found->second.node;
    if (!node.documents.contains(key)) return false;
    require_not_committing(found->second.is_committing, path);
    const int64_t bytes_before = bytes_of(node);
    node.documents.erase(key);
    if (key == ".zattrs") {
      node.attributes.clear();
    } else {
      before = std::move(node.array);
      node.array = nullptr;
      node.kind = NodeKind::kUnknown;
    }
    add(table, found->first.first, 0, bytes_of(node) - bytes_before);
    if (node.documents.empty()) erase(table, found);
    return true;
  });
}

NodeStore::Committing NodeStore::begin_commit(const std::string& principal, const std::string& path, int format) {
  Committing out{principal, {}};
  table_.with([&](Table& table) {
    std::vector<Entry*> taken;
    for (auto at = table.nodes.lower_bound({principal, path}); at != table.nodes.end() && at->first.first == principal;
         ++at) {
      auto& [name, entry] = *at;
      if (!name.second.starts_with(path)) break;
      if (entry.node.format != format || !is_at_or_below(name.second, path)) continue;
      require_not_committing(entry.is_committing, name.second);
      if (entry.node.kind == NodeKind::kUnknown) {
        throw core::Error("conflict", fmt::format("{} has attributes and neither .zarray nor .zgroup: PUT one of them, "
                                                  "or DELETE its .zattrs",
                                                  shown(name.second)));
      }
      taken.push_back(&entry);
      out.nodes.emplace_back(name.second, entry.node);
    }
    for (Entry* entry : taken) entry->is_committing = true;
  });
  if (out.nodes.empty()) {
    throw core::Error("not_found",
                      fmt::format("nothing is pending at {} or below in Zarr version {}: it was committed, "
                                  "its time is over, or the server has restarted",
                                  shown(path), format));
  }
  return out;
}

void NodeStore::undo_commit(const Committing& nodes) {
  for (const auto& [path, node] : nodes.nodes) {
    if (node.array != nullptr) node.array->undo_commit();
  }
  table_.with([&](Table& table) {
    for (const auto& [path, node] : nodes.nodes) {
      const auto found = table.nodes.find({nodes.principal, path});
      if (found != table.nodes.end()) found->second.is_committing = false;
    }
  });
}

void NodeStore::end_commit(const Committing& nodes) {
  table_.with([&](Table& table) {
    for (const auto& [path, node] : nodes.nodes) {
      const auto found = table.nodes.find({nodes.principal, path});
      if (found != table.nodes.end()) erase(table, found);
    }
  });
}

std::vector<arrays::ArrayRef> NodeStore::holders(std::string_view path, std::string_view principal) {
  std::vector<arrays::ArrayRef> out;
  if (path.empty()) return out;
  const auto rows = store_.catalog().read([&](storage::Reader& reader) {
    return reader.arrays_with_prefix(principal, path, arrays::ArrayStore::kMostWithPrefix);
  });
  for (const storage::NamedArray& row : rows) {
    if (row.name == path && row.is_ready) out.push_back(arrays_.find(row.id, principal));
  }
  return out;
}

// The arrays that have names of what is committed.
std::vector<arrays::ArrayRef> NodeStore::replaced_by(const Committing& nodes, bool replaces) {
  std::vector<arrays::ArrayRef> out;
  for (const auto& [path, node] : nodes.nodes) {
    for (arrays::ArrayRef& holder : holders(path, nodes.principal)) {
      if (!replaces) {
        throw core::Error("name_taken",
                          fmt::format("the name '{}' is that of array {}; commit with ?replace=true to put "
                                      "what is pending in its place",
                                      path, holder->info().id));
      }
      out.push_back(std::move(holder));
    }
  }
  arrays::ArrayStore::require_removable(out);
  return out;
}

std::vector<arrays::ArrayRef> NodeStore::commit(const std::string& principal, const std::string& path, int format,
                                                bool replaces, const std::optional<storage::IdempotencyRow>& key) {
  const Committing nodes = begin_commit(principal, path, format);
  std::vector<arrays::ArrayRef> replaced;
  try {
    for (const auto& [at, node] : nodes.nodes) {
      if (node.array == nullptr) continue;
      try {
        node.array->begin_commit();
      } catch (const core::Error& error) {
        throw core::Error(error.code(), fmt::format("{}: {}; PUT its metadata and chunks again, or DELETE its metadata",
                                                    shown(at), error.detail()));
      }
    }
    replaced = replaced_by(nodes, replaces);
  } catch (...) {
    undo_commit(nodes);
    throw;
  }
  std::vector<arrays::ArrayRef> made;
  std::vector<storage::ZarrGroupRow> groups;
  std::vector<std::string> gone_groups;  // an array is there now
  std::vector<std::string> ids;
  int64_t coming_bytes = 0;  // of attributes that come with the rows of arrays
  for (const auto& [at, node] : nodes.nodes) {
    if (node.kind == NodeKind::kGroup) {
      groups.push_back({at, node.attributes});
      continue;
    }
    made.push_back(node.array->array());
    ids.push_back(made.back()->info().id);
    gone_groups.push_back(at);
    coming_bytes += static_cast<int64_t>(node.attributes.size());
  }
  for (const arrays::ArrayRef& array : replaced) {
    coming_bytes -= array->state().with(
        [](const arrays::Array::State& state) { return static_cast<int64_t>(state.attributes.size()); });
  }
  std::optional<storage::IdempotencyRow> claimed = key;
  if (claimed) claimed->made = core::join_ids(ids);
  const auto change = [&](storage::Transaction& transaction, int64_t more_bytes) {
    for (const std::string& at : gone_groups) transaction.delete_zarr_group(principal, at);
    for (const storage::ZarrGroupRow& row : groups) transaction.put_zarr_group(principal, row, limits_.most_groups);
    const int64_t bytes = transaction.zarr_attribute_bytes(principal) + more_bytes;
    if (bytes > limits_.most_attribute_bytes) {
      throw core::Error("limit_reached",
                        fmt::format("attributes of Zarr groups and arrays would have {} bytes, one principal's may "
                                    "have {}; delete some",
                                    bytes, limits_.most_attribute_bytes));
    }
    transaction.claim_key(claimed);
  };
  // What is refused is refused before the arrays give their shards: a transaction that is undone says so.
  struct Rehearsed {};
  try {
    store_.catalog().write([&](storage::Transaction& transaction) {
      change(transaction, coming_bytes);
      throw Rehearsed{};
    });
  } catch (const Rehearsed&) {
  } catch (...) {
    undo_commit(nodes);
    throw;
  }
  std::vector<std::pair<ChunkedArray*, arrays::ShardBuffers>> given;  // those in memory
  try {
    std::vector<std::pair<arrays::ArrayRef, arrays::NewShards>> published;
    for (const auto& [at, node] : nodes.nodes) {
      if (node.array == nullptr) continue;
      const arrays::ArrayRef& array = node.array->array();
      array->state().with(
          [&, &attributes = node.attributes](arrays::Array::State& state) { state.attributes = attributes; });
      arrays::NewShards shards = node.array->take_shards();
      if (!shards.blobs) given.emplace_back(node.array.get(), shards.memory);
      published.emplace_back(array, std::move(shards));
    }
    arrays_.publish(std::move(published), replaced, {},
                    [&](storage::Transaction& transaction) { change(transaction, 0); });
  } catch (...) {
    // Somebody took a name meanwhile, or the disk is full. What blobs had is used up: ~ChunkedArray deletes the arrays.
    if (given.size() < made.size()) {
      end_commit(nodes);
      throw;
    }
    for (auto& [array, shards] : given) array->put_back(std::move(shards));
    undo_commit(nodes);
    throw;
  }
  for (const auto& [at, node] : nodes.nodes) {
    if (node.array != nullptr) node.array->end_commit();
  }
  end_commit(nodes);
  return made;
}

void NodeStore::expire() {
  const core::SteadyTime now = clock_.steady();
  const auto timeout = arrays_.pending().limits().timeout;
  std::vector<std::shared_ptr<ChunkedArray>> gone;
  table_.with([&](Table& table) {
    // A tree goes when all of it is over, so that a commit of it does not find a part alone.
    std::set<std::pair<std::string, std::string>> alive;
    for (const auto& [name, entry] : table.nodes) {
      const bool is_over = entry.node.array != nullptr ? entry.node.array->is_gone() : now - entry.touched >= timeout;
      if (!is_over || entry.is_committing) alive.emplace(name.first, tree_of(name.second));
      if (is_over && entry.node.array != nullptr) gone.push_back(entry.node.array);
    }
    for (auto at = table.nodes.begin(); at != table.nodes.end();) {
      const bool stays = alive.contains({at->first.first, std::string(tree_of(at->first.second))});
      at = stays ? std::next(at) : erase(table, at);
    }
  });
  for (const auto& array : gone) array->release();
}

arrays::ArrayRef NodeStore::find_array(std::string_view path, std::string_view principal) {
  if (path.empty()) return nullptr;
  arrays::ArrayRef found = arrays_.find_live(path, principal);
  return found != nullptr && !found->is_pending() ? found : nullptr;
}

std::optional<Group> NodeStore::find_group(const std::string& path, std::string_view principal,
                                           core::MemoryReservation& memory) {
  const std::string prefix = path.empty() ? "" : path + "/";
  Group out;
  constexpr int64_t kMost = arrays::ArrayStore::kMostWithPrefix;
  int64_t attribute_bytes = 0;
  bool is_listed = store_.catalog().read([&](storage::Reader& reader) {
    attribute_bytes = reader.zarr_group_bytes(principal, path);
    return static_cast<int64_t>(reader.arrays_with_prefix(principal, prefix, kMost + 1).size()) <= kMost;
  });
  if (is_listed) {
    out.arrays = arrays_.find_prefix(prefix, principal, arrays::ArrayStore::OfAName::kAddressed);
    for (const arrays::ArrayRef& array : *out.arrays) {
      attribute_bytes += array->state().with(
          [](const arrays::Array::State& state) { return static_cast<int64_t>(state.attributes.size()); });
    }
    const int64_t bytes =
        kNodeBytes * static_cast<int64_t>(out.arrays->size() + 1) + kOfAttributeByte * attribute_bytes;
    is_listed = bytes <= memory.limit_bytes() / kPartOfRequest;
    if (is_listed) memory.grow(bytes);
    if (!is_listed && !out.arrays->empty()) out.arrays.reset();
  }
  out.groups = store_.catalog().read([&](storage::Reader& reader) {
    // The group itself comes first.
    return reader.zarr_groups(principal, path, is_listed ? limits_.most_groups : 1);
  });
  if (!path.empty() && out.groups.empty() && out.arrays && out.arrays->empty()) return std::nullopt;
  if (!out.groups.empty() && out.groups.front().path == path) {
    out.attributes = out.groups.front().attributes;
    out.groups.erase(out.groups.begin());
  }
  if (!is_listed) {
    out.arrays.reset();
    out.groups.clear();
  }
  return out;
}

bool NodeStore::delete_group(std::string_view path, std::string_view principal) {
  bool was_there = false;
  store_.catalog().write(
      [&](storage::Transaction& transaction) { was_there = transaction.delete_zarr_group(principal, path); },
      storage::Space::kFrees);
  return was_there;
}

}  // namespace meshd::zarr
