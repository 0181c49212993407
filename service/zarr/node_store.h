// The Zarr hierarchy of each principal: groups and arrays by path. A path is a name of an array, or a prefix of names.
// What clients write is pending until it is committed; readers see what is committed.
//
//   1. A metadata document makes a pending node. That of an array begins a pending array (ChunkedArray).
//   2. Chunks fill it.
//   3. commit() makes all pending nodes at a path and below visible in one transaction: arrays hold their names, and
//      groups have rows.
//
// Pending nodes are in memory: a restart forgets them, and chunks that come behind it are refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/arrays/array_store.h"
#include "service/core/clock.h"
#include "service/core/locked.h"
#include "service/core/memory_ledger.h"
#include "service/zarr/chunked_array.h"
#include "service/zarr/open_files.h"

namespace meshd::zarr {

struct NodeLimits {
  int64_t most_nodes = 4096;                        ///< pending ones of one principal
  int64_t most_groups = 10'000;                     ///< committed ones of one principal
  int64_t most_document_bytes = int64_t{64} << 20;  ///< of all pending nodes; one principal's have a quarter
  /// Of all committed groups and arrays of one principal: those of arrays are in memory.
  int64_t most_attribute_bytes = int64_t{16} << 20;
  /// Of all pending arrays. 0: a part of what the process may open.
  int64_t most_open_files = 0;
  int64_t principals_part_of_files = 4;  ///< one principal's arrays have a quarter; 1: all
};

enum class NodeKind : uint8_t {
  kUnknown,  ///< attributes alone have come (version 2)
  kGroup,
  kArray,
};

/// What a client has written of a node and not committed. A copy.
struct PendingNode {
  int format = 3;  ///< version of Zarr
  NodeKind kind = NodeKind::kUnknown;
  std::map<std::string, std::string> documents;  ///< by their key, as they came
  std::string attributes;                        ///< JSON, as Array::State has it
  std::shared_ptr<ChunkedArray> array;           ///< of kArray
};

/// A metadata document as it is put.
struct NodeDocument {
  std::string key, text;
  NodeKind kind = NodeKind::kUnknown;
  std::optional<std::string> attributes;  ///< where the document has them
  std::shared_ptr<ChunkedArray> array;    ///< of kArray
};

/// A committed group.
struct Group {
  std::string attributes;  ///< JSON; empty: none
  /// The arrays and described groups below, by path; nothing: there are more than kMostWithPrefix, or a document of
  /// them takes more memory than one request should.
  std::optional<std::vector<arrays::ArrayRef>> arrays;
  std::vector<storage::ZarrGroupRow> groups;
};

/// A put costs by the node that it is of, however many are pending. Any thread. Lock order: its table, then the locks
/// of ArrayStore and of arrays. Storage is called without the table.
class NodeStore {
 public:
  NodeStore(storage::Store& store, arrays::ArrayStore& arrays, const core::Clock& clock, NodeLimits limits = {});

  [[nodiscard]] std::optional<PendingNode> find_pending(std::string_view principal, std::string_view path, int format);
  /// The pending array, whose time and that of its siblings begins anew. Throws conflict where there is none.
  std::shared_ptr<ChunkedArray> find_chunked(std::string_view principal, std::string_view path, int format);
  /// Counts files that a pending array will hold open. Throws limit_reached, overloaded.
  [[nodiscard]] FileCharge charge_files(const std::string& principal, int64_t files);
  /// The node gets the document; one of another kind or version is replaced. Throws limit_reached, overloaded,
  /// conflict (it is being committed).
  void put(const std::string& principal, const std::string& path, int format, NodeDocument document);
  /// Forgets the document of a pending node, and the node where it has no other. False: there was none. Throws
  /// conflict.
  bool drop(std::string_view principal, std::string_view path, int format, const std::string& key);

  /// Commits the pending nodes of this version at `path` and below, all or none, and returns the arrays by path.
  /// `replaces`: arrays that have the names are deleted in the same transaction. Throws not_found (nothing is pending,
  /// or an array of it has expired), name_taken, array_in_use, conflict, limit_reached: then all is pending as before;
  /// and what ArrayStore::publish throws: then all is, too, unless chunks are on the disk, and nothing where some are.
  std::vector<arrays::ArrayRef> commit(const std::string& principal, const std::string& path, int format, bool replaces,
                                       const std::optional<storage::IdempotencyRow>& key);
  /// Deletes what no client has written to for the time of pending arrays. Called periodically.
  void expire();

  /// The principal's array of this name that has data; null: there is none.
  arrays::ArrayRef find_array(std::string_view path, std::string_view principal);
  /// The committed group; nothing: there is none. The root is there always.
  /// `memory` grows by what a document of it takes. Throws memory_full.
  std::optional<Group> find_group(const std::string& path, std::string_view principal, core::MemoryReservation& memory);
  /// False when no client has described it.
  bool delete_group(std::string_view path, std::string_view principal);

  /// Ids of the arrays that have the name and data: whoever makes another waits for the commit to replace them.
  std::vector<arrays::ArrayRef> holders(std::string_view path, std::string_view principal);

 private:
  struct Entry {
    PendingNode node;
    core::SteadyTime touched;
    bool is_committing = false;
  };
  /// Pending nodes of all, or of one principal, and the bytes of their documents and attributes.
  struct Sum {
    int64_t nodes = 0, bytes = 0;
  };
  using Nodes = std::map<std::pair<std::string, std::string>, Entry>;  ///< by principal and path
  struct Table {
    Nodes nodes;
    Sum all;
    std::map<std::string, Sum, std::less<>> by_principal;  ///< of those that have nodes
  };
  struct Committing;

  static void add(Table& table, const std::string& principal, int64_t nodes, int64_t bytes);
  /// The entry behind it.
  static Nodes::iterator erase(Table& table, Nodes::iterator entry);
  Committing begin_commit(const std::string& principal, const std::string& path, int format);
  void undo_commit(const Committing& nodes);
  void end_commit(const Committing& nodes);
  [[nodiscard]] std::vector<arrays::ArrayRef> replaced_by(const Committing& nodes, bool replaces);

  storage::Store& store_;
  arrays::ArrayStore& arrays_;
  const core::Clock& clock_;
  const NodeLimits limits_;
  OpenFiles files_;
  core::Locked<Table> table_;
};

}  // namespace meshd::zarr
