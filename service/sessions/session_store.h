// The store of sessions: their queues (SessionQueue), their mesh stacks, and the rows that restore both after a
// restart.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "service/core/clock.h"
#include "service/sessions/mesh_stack.h"
#include "service/sessions/session_queue.h"
#include "storage/catalog.h"

namespace meshd::sessions {

/// Any thread.
class SessionStore {
 public:
  /// `has_mesh_stack`: false forbids to enter meshes (behaviour M27). `limit`: sessions that one principal may have.
  SessionStore(storage::Catalog& catalog, const core::Clock& clock, bool has_mesh_stack = true, int64_t limit = 0)
      : catalog_(catalog), clock_(clock), has_mesh_stack_(has_mesh_stack), limit_(limit) {}

  /// `key`: stored with the session, its id as what was made. Throws limit_reached, idempotency_in_progress.
  storage::SessionRow create(const std::string& principal, const std::string& name,
                             storage::OnError on_error = storage::OnError::kContinue,
                             storage::EffectMode effects = storage::EffectMode::kAtomic,
                             std::optional<storage::IdempotencyRow> key = std::nullopt);
  /// Throws not_found for unknown sessions and those of other principals.
  storage::SessionRow get(std::string_view id, std::string_view principal);
  storage::Page<storage::SessionRow> list(std::string_view principal, const storage::PageRequest& page);
  /// How many the principal has.
  int64_t count(std::string_view principal);
  /// The session takes no more jobs, and those that wait for their client end. Its log stays readable until remove().
  /// Again is harmless. Throws not_found.
  void close(const std::string& id, std::string_view principal);
  /// Forgets a closed session, once its jobs are over (JobRunner::close_session). Nothing of it is visible afterwards;
  /// of one with many rows, most are left to remove_deleted().
  void remove(const std::string& id);
  /// The session is there, open or closing.
  bool is_there(const std::string& id);
  /// Removes what is left of deleted sessions, in short transactions, until `is_stopping`; returns in how many. Called
  /// periodically, which also ends what a stop of the server has interrupted.
  int64_t remove_deleted(const std::function<bool()>& is_stopping);
  /// The meshes that the session is inside of. Throws not_found.
  MeshStack mesh_stack(std::string_view id, std::string_view principal);
  /// Enters a mesh with devices. Throws conflict: abstract meshes, meshes forbidden, too many; idempotency_in_progress.
  MeshStack push_mesh(std::string_view id, std::string_view principal, const mesh::Mesh& mesh,
                      const std::optional<storage::IdempotencyRow>& key = std::nullopt);
  /// Leaves the mesh entered last. Throws conflict at the base.
  MeshStack pop_mesh(std::string_view id, std::string_view principal);
  /// A halted session goes on (JobRunner::resume_session); one that is open is left as it is. `key`: stored with that,
  /// the session's id as what was made. Throws not_found, session_closed, idempotency_in_progress.
  void resume(const std::string& id, std::string_view principal,
              std::optional<storage::IdempotencyRow> key = std::nullopt);
  /// The session's queue, created at the first call: closing or halted as the row is.
  std::shared_ptr<SessionQueue> queue(const std::string& id);
  [[nodiscard]] int64_t open_count() const;

 private:
  storage::Catalog& catalog_;
  const core::Clock& clock_;
  const bool has_mesh_stack_;
  const int64_t limit_;
  std::mutex stack_mutex_;  ///< one change of a stack at a time; taken with no other lock held
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<SessionQueue>> queues_;
};

}  // namespace meshd::sessions
