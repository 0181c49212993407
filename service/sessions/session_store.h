// Sessions: one client's line. A session numbers its jobs in the order they were accepted, lets those with ordered
// effects commit in that order only, and knows when nothing accepted so far is left.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "service/core/clock.h"
#include "service/sessions/mesh_stack.h"
#include "storage/catalog.h"

namespace meshd::sessions {

/// Ids of stored arrays that a job reads and updates.
struct ArrayUses {
  std::set<std::string> reads;
  std::set<std::string> updates;
};

/// The order of one session's jobs. Any thread. It waits in the functions that say so only.
class Line {
 public:
  /// A job was accepted with this number. `ordered`: it has ordered effects and commits in turn.
  void enter(int64_t number, bool ordered, ArrayUses uses = {});
  /// Waits until no job with a lower number is left that updates what this one reads or updates; false when the time is
  /// up before.
  bool wait_for_arrays(int64_t number, std::chrono::milliseconds time);
  /// Waits until no job with a lower number is left that reads what this one updates; false as above.
  bool wait_for_readers(int64_t number, std::chrono::milliseconds time);
  /// Waits until no ordered job with a lower number is left. Jobs that are not ordered need not ask.
  void wait_turn(int64_t number);
  /// The same, for a while: false when it is not the job's turn by then.
  bool wait_turn_for(int64_t number, std::chrono::milliseconds time);
  /// The session is being closed: jobs that wait for their client have to end.
  void close();
  [[nodiscard]] bool is_closing() const;
  /// The job is over, committed or not.
  void leave(int64_t number);
  /// Waits until all jobs accepted before the call are over.
  void wait_idle();
  [[nodiscard]] int64_t open_count() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::set<int64_t> open_;
  std::set<int64_t> ordered_;
  std::map<int64_t, ArrayUses> uses_;  ///< of open jobs with stored arrays
  bool is_closing_ = false;
};

/// Any thread.
class SessionStore {
 public:
  /// `has_mesh_stack`: false forbids to enter meshes (behaviour M27).
  SessionStore(storage::Catalog& catalog, const core::Clock& clock, bool has_mesh_stack = true)
      : catalog_(catalog), clock_(clock), has_mesh_stack_(has_mesh_stack) {}

  storage::SessionRow create(const std::string& principal, const std::string& name);
  /// Throws not_found for unknown sessions and those of other principals.
  storage::SessionRow get(std::string_view id, std::string_view principal);
  storage::Page<storage::SessionRow> list(std::string_view principal, const storage::PageRequest& page);
  /// Closes: ends jobs that wait for their client, waits for the others, then takes no more. Its log stays readable
  /// until remove().
  void remove(const std::string& id, std::string_view principal);
  /// The meshes that the session is inside of. Throws not_found.
  MeshStack mesh_stack(std::string_view id, std::string_view principal);
  /// Enters a mesh with devices. Throws conflict: abstract meshes, meshes forbidden, too many.
  MeshStack push_mesh(std::string_view id, std::string_view principal, const mesh::Mesh& mesh);
  /// Leaves the mesh entered last. Throws conflict at the base.
  MeshStack pop_mesh(std::string_view id, std::string_view principal);
  /// The session's line, made when first asked for.
  std::shared_ptr<Line> line(const std::string& id);
  [[nodiscard]] int64_t open_count() const;

 private:
  storage::Catalog& catalog_;
  const core::Clock& clock_;
  const bool has_mesh_stack_;
  std::mutex stack_mutex_;  ///< one change of a stack at a time; taken with no other lock held
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Line>> lines_;
};

}  // namespace meshd::sessions
