// The models of all principals: versions of named programs with bound arguments, stored in the catalog and served from
// memory. Public alike for HTTP and for tests; knows no HTTP and no JSON.
#pragma once

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
#include "service/jobs/job_runner.h"
#include "service/jobs/queue/fiber_pool.h"
#include "service/models/batcher.h"
#include "service/models/model_spec.h"
#include "storage/catalog.h"

namespace meshd::models {

enum class ModelState : uint8_t {
  kLoading,      ///< a restart has not warmed it up yet
  kReady,        ///< takes requests
  kUnavailable,  ///< unloaded, or could not be loaded
};
/// As the repository index of the protocol says it: LOADING, READY, UNAVAILABLE.
std::string_view to_string(ModelState state);

/// The arrays that a version binds, which are neither replaced nor deleted for as long as this lives.
class BoundArrays {
 public:
  /// On storage's writer thread, or at start. Throws as ArrayStore::keep_for_job.
  BoundArrays(arrays::ArrayStore& arrays, std::vector<arrays::ArrayRef> bound)
      : arrays_(arrays), bound_(std::move(bound)) {
    arrays_.keep_for_job(bound_, "");
  }
  ~BoundArrays() { arrays_.job_has_read(bound_, ""); }
  BoundArrays(const BoundArrays&) = delete;
  BoundArrays& operator=(const BoundArrays&) = delete;

 private:
  arrays::ArrayStore& arrays_;
  const std::vector<arrays::ArrayRef> bound_;
};

/// A version of a model: who waits for its answer holds it. Any thread.
class Model {
 public:
  Model(std::shared_ptr<const ModelSpec> spec, const BatchServices& services)
      : spec_(std::move(spec)), batcher_(std::make_shared<Batcher>(spec_, services)) {}

  /// Before anybody else has it.
  void keep(std::unique_ptr<const BoundArrays> bound) { bound_ = std::move(bound); }
  [[nodiscard]] const ModelSpec& spec() const { return *spec_; }
  [[nodiscard]] Batcher& batcher() const { return *batcher_; }
  struct Status {
    ModelState state = ModelState::kLoading;
    std::string reason;  ///< why it is unavailable
  };
  [[nodiscard]] Status status() const {
    return status_.with([](const Status& status) { return status; });
  }
  void set_status(Status status) {
    status_.with([&](Status& own) { own = std::move(status); });
  }
  /// The same for one that is loading; another has been loaded, unloaded or deleted meanwhile and stays so.
  void end_loading(Status status) {
    status_.with([&](Status& own) {
      if (own.state == ModelState::kLoading) own = std::move(status);
    });
  }

 private:
  const std::shared_ptr<const ModelSpec> spec_;
  const std::shared_ptr<Batcher> batcher_;
  std::unique_ptr<const BoundArrays> bound_;  ///< until the last request that waits has its answer
  mutable core::Locked<Status> status_;
};
using ModelRef = std::shared_ptr<Model>;

/// Any thread.
class ModelStore {
 public:
  ModelStore(storage::Catalog& catalog, arrays::ArrayStore& arrays, compile::Compiler& compiler,
             tensor::BufferPool& pool, jobs::JobRunner& runner, const core::Clock& clock, core::MemoryLedgerRef memory);
  ~ModelStore();

  /// Registers the next version of a model, holding the arrays that it binds: they are neither replaced nor deleted
  /// while a version names them. Warms it up before it is shown. The same document and program as the last version's
  /// give that one, and false. Throws limit_reached, overloaded, name_taken (a shared name of another principal's),
  /// invalid_request for arrays that a restart would lose, and what warming up throws.
  std::pair<ModelRef, bool> put(ModelSpec spec, const core::WaiterRef& waiter);
  /// The principal's own model, or else the shared versions of another's; without a version the latest. Throws
  /// not_found.
  ModelRef find(std::string_view name, std::optional<int64_t> version, std::string_view principal) const;
  /// The same for a request to run: throws model_not_loaded where it is not ready.
  ModelRef find_ready(std::string_view name, std::optional<int64_t> version, std::string_view principal) const;
  /// Versions of the model that find() gives, ascending.
  [[nodiscard]] std::vector<ModelRef> versions(std::string_view name, std::string_view principal) const;
  /// What the principal may use, by name and version; of a name that it has itself, no shared ones.
  [[nodiscard]] std::vector<ModelRef> visible(std::string_view principal) const;
  /// A page of the same, the latest version of each.
  struct Page {
    std::vector<ModelRef> items;
    std::string next;
  };
  Page list(std::string_view principal, const storage::PageRequest& page) const;
  /// One version, or all. Requests that wait are still answered, and hold its arrays until then. Throws not_found;
  /// forbidden for another's shared one.
  void remove(std::string_view name, std::optional<int64_t> version, std::string_view principal);
  /// All versions take requests, or none does; stays so over a restart. Throws as remove(), and what loading throws.
  void load(std::string_view name, std::string_view principal, const core::WaiterRef& waiter);
  void unload(std::string_view name, std::string_view principal);

  /// What knows the documents of clients.
  struct Decoder {
    std::function<ModelSpec(const storage::ModelRow&)>
        spec;  ///< without version and time; throws when it cannot be made
    std::function<bool(const storage::ModelRow&)> is_shared;  ///< of a version without a spec; throws nothing
  };
  /// Versions that the last process left. One that cannot be decoded is unavailable, with the reason, and still has its
  /// name. They are warmed up in the background. Once, at start.
  void recover(const Decoder& decoder);
  /// No model is still loading.
  [[nodiscard]] bool is_settled() const;

  /// Versions that one principal may have.
  static constexpr int64_t kMostVersions = 1000;

 private:
  using Versions = std::map<int64_t, ModelRef>;
  using Key = std::pair<std::string, std::string>;  ///< principal and name
  /// What other principals see of a name.
  struct Shared {
    std::string principal;  ///< whose name it is
    Versions versions;      ///< the shared ones of its versions
    int64_t puts = 0;       ///< that want to share a version and have not ended
  };
  struct Table {
    std::map<Key, Versions> models;
    std::map<std::string, Shared, std::less<>> shared;  ///< by name; none that has neither versions nor puts
  };
  using SharedPlace = std::map<std::string, Shared, std::less<>>::iterator;

  [[nodiscard]] const Versions* find_versions(const Table& table, std::string_view name,
                                              std::string_view principal) const;
  /// A version of which no more than its row is known.
  static ModelSpec spec_of_row(const storage::ModelRow& row, bool is_shared);
  Versions own_versions(std::string_view name, std::string_view principal) const;
  /// The same for what changes them. Throws not_found; forbidden for another's shared ones.
  Versions versions_to_change(std::string_view name, std::optional<int64_t> version, std::string_view principal) const;
  static std::vector<arrays::ArrayRef> bound_arrays(const ModelSpec& spec);
  /// Documents, and the values in them, stay in memory. Throws limit_reached, overloaded.
  void require_room(const ModelSpec& spec) const;
  /// For a put: until end_claim() no other principal can share a version of this name. Throws name_taken.
  void claim_name(const ModelSpec& spec);
  void end_claim(const ModelSpec& spec);
  static void erase_if_free(Table& table, SharedPlace shared);
  void insert(const ModelRef& model);
  void drop(const ModelRef& model);
  void warm(const ModelRef& model, const core::WaiterRef& waiter) const;
  /// After a restart: warms it up, in the background, until it is ready or unavailable.
  void finish_loading(const ModelRef& model, const core::WaiterRef& waiter) const;
  /// What ended its loading; nothing while others hold the memory for it.
  std::optional<Model::Status> try_to_load(const ModelRef& model, const core::WaiterRef& waiter) const;

  storage::Catalog& catalog_;
  arrays::ArrayStore& arrays_;
  const core::Clock& clock_;
  mutable core::Locked<Table> table_;
  jobs::FiberPool fibers_;
  const BatchServices services_;
};

}  // namespace meshd::models
