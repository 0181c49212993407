// The registry of meshes and programs that clients refer to by id. Content is interned by digest; visibility is by
// principal.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/compile/rewrite/gradient_text.h"
#include "service/core/clock.h"
#include "service/core/locked.h"
#include "service/core/lru_cache.h"
#include "service/core/memory_ledger.h"
#include "service/mesh/mesh.h"
#include "storage/catalog.h"

namespace meshd::registry {

/// A stored mesh as a principal sees it.
struct StoredMesh {
  std::string id;
  mesh::Mesh mesh;
  core::WallTime created;
};

/// Throws invalid_mesh with JSON Pointers for devices that the server does not have; whoever read the mesh has checked
/// the rest.
void verify_mesh(const mesh::Mesh& mesh, int64_t server_devices);

/// Any thread.
class MeshRegistry {
 public:
  /// `limit`: meshes that one principal may have; 0: any number.
  MeshRegistry(storage::Catalog& catalog, const core::Clock& clock, int64_t limit = 0)
      : catalog_(catalog), clock_(clock), limit_(limit) {}
  /// Stores a verified mesh. True: the principal did not see it before (201). Throws limit_reached.
  std::pair<StoredMesh, bool> put(const mesh::Mesh& mesh, const std::string& principal);
  /// Throws not_found.
  StoredMesh get(std::string_view id, std::string_view principal);
  struct Page {
    std::vector<StoredMesh> items;
    std::string next;
  };
  Page list(std::string_view principal, const storage::PageRequest& page);
  /// How many the principal has.
  int64_t count(std::string_view principal);
  void remove(std::string_view id, std::string_view principal);

 private:
  storage::Catalog& catalog_;
  const core::Clock& clock_;
  const int64_t limit_;
};

/// A client's metadata of a program. Trees are JSON texts, empty where there is none; they are part of the program's
/// identity.
struct ProgramNames {
  std::string name;  ///< else the module's
  std::string doc;
  std::string in_tree;
  std::string out_tree;
  std::optional<int64_t> in_leaves = {}, out_leaves = {};  ///< of the trees: as many as arguments and results
};

struct StoredProgram {
  std::string id;
  std::string name;
  std::string doc;
  std::string in_tree;
  std::string out_tree;
  std::string format;
  core::WallTime created;
  compile::ParsedRef parsed;  ///< null in lists
};

/// Any thread.
class ProgramRegistry {
 public:
  /// `limit`: programs that one principal may have; 0: any number.
  /// `memory` holds, as a request, what is read of a stored program that is not in the compiler's cache; null: it is
  /// not counted.
  ProgramRegistry(storage::Catalog& catalog, compile::Compiler& compiler, const core::Clock& clock, int64_t limit = 0,
                  core::MemoryLedgerRef memory = nullptr)
      : catalog_(catalog), compiler_(compiler), clock_(clock), limit_(limit), memory_(std::move(memory)) {}
  /// Reads, verifies and stores. Throws what Compiler::parse throws, invalid_request for trees with other numbers of
  /// leaves than the program has values, and limit_reached. True: the principal did not see it before (201). A program
  /// is its text, format and trees; name, doc and time are each principal's own, those of its first post.
  std::pair<StoredProgram, bool> put(const std::string& format, const std::string& text, const ProgramNames& names,
                                     const std::string& principal);
  /// Stores the program that computes gradients of `of`, as put(); without a name it is "grad_" and the name of `of`.
  /// Throws what compile::gradient_text throws.
  std::pair<StoredProgram, bool> put_gradient(const StoredProgram& of, const compile::DifferentiationRequest& request,
                                              const std::optional<std::string>& name, const std::string& principal);
  /// A large one that is not in the compiler's cache counts as a request for as long as somebody holds it. Throws
  /// not_found, memory_full.
  StoredProgram get(const std::string& id, std::string_view principal);
  /// For a job that was accepted with it, even if its principal has deleted the program since. Throws not_found.
  StoredProgram get_for_accepted_job(const std::string& id);
  struct Page {
    std::vector<StoredProgram> items;
    std::string next;
  };
  Page list(std::string_view principal, const storage::PageRequest& page);
  /// How many the principal has.
  int64_t count(std::string_view principal);
  void remove(std::string_view id, std::string_view principal);

 private:
  /// Rows that principals asked for, so that a run of a known program reads no row. The parsed program stays the
  /// compiler's: it is gone from here when its cache gives it up.
  struct Seen {
    StoredProgram program;  ///< without `parsed`
    std::weak_ptr<const compile::ParsedProgram> parsed;
  };
  struct SeenRows {
    core::LruCache<Seen> rows{kSeenRows, kSeenBytes};
    int64_t removals = 0;  ///< what was read before one of them may be gone
  };

  StoredProgram load(const std::optional<storage::ProgramRow>& row, const std::string& id);

  static constexpr size_t kSeenRows = 4096;
  static constexpr int64_t kSeenBytes = int64_t{1} << 20;

  storage::Catalog& catalog_;
  compile::Compiler& compiler_;
  core::Locked<SeenRows> seen_;
  const core::Clock& clock_;
  const int64_t limit_;
  const core::MemoryLedgerRef memory_;
};

}  // namespace meshd::registry
