#include "service/sessions/session_store.h"

#include <fmt/core.h>

#include "service/core/error.h"
#include "service/core/ids.h"
#include "service/quotas/limits.h"

namespace meshd::sessions {
namespace {

constexpr size_t kDeepestStack = 64;

}  // namespace

storage::SessionRow SessionStore::create(const std::string& principal, const std::string& name,
                                         storage::OnError on_error, storage::EffectMode effects,
                                         std::optional<storage::IdempotencyRow> key) {
  storage::SessionRow row;
  row.id = core::new_id("ses", clock_);
  row.principal = principal;
  row.name = name;
  row.on_error = on_error;
  row.effects = effects;
  row.created = clock_.wall();
  row.document = "{}";
  if (key) key->made = row.id;
  catalog_.write([&](storage::Transaction& transaction) {
    const int64_t count = transaction.count_of(storage::Counted::kSessions, principal);
    quotas::require_below(count, limit_, principal, "sessions");
    transaction.insert_session(row);
    transaction.claim_key(key);
  });
  return row;
}

storage::SessionRow SessionStore::get(std::string_view id, std::string_view principal) {
  auto row = catalog_.read([&](storage::Reader& reader) { return reader.session(id, principal); });
  if (!row) throw core::Error("not_found", "there is no session '" + std::string(id) + "'");
  return *row;
}

storage::Page<storage::SessionRow> SessionStore::list(std::string_view principal, const storage::PageRequest& page) {
  return catalog_.read([&](storage::Reader& reader) { return reader.sessions(principal, page); });
}

int64_t SessionStore::count(std::string_view principal) {
  return catalog_.read(
      [&](storage::Reader& reader) { return reader.count_of(storage::Counted::kSessions, principal); });
}

void SessionStore::close(const std::string& id, std::string_view principal) {
  static_cast<void>(get(id, principal));
  catalog_.write([&](storage::Transaction& transaction) { transaction.close_session(id, clock_.wall()); },
                 storage::Space::kFrees);
  queue(id)->close();
}

void SessionStore::resume(const std::string& id, std::string_view principal,
                          std::optional<storage::IdempotencyRow> key) {
  static_cast<void>(get(id, principal));
  if (key) key->made = id;
  const auto held = queue(id);
  // In the order of transactions, as halts are: a job that fails behind this halts the session again.
  catalog_.write_then(
      [&](storage::Transaction& transaction) {
        transaction.resume_session(id);
        transaction.claim_key(key);
      },
      [&] { held->resume(); });
}

void SessionStore::remove(const std::string& id) {
  catalog_.write([&](storage::Transaction& transaction) { transaction.delete_session(id); }, storage::Space::kFrees);
  const std::lock_guard held(mutex_);
  queues_.erase(id);
}

bool SessionStore::is_there(const std::string& id) {
  return catalog_.read([&](storage::Reader& reader) { return reader.session(id).has_value(); });
}

int64_t SessionStore::remove_deleted(const std::function<bool()>& is_stopping) {
  int64_t transactions = 0;
  while (!is_stopping() && catalog_.read([](storage::Reader& reader) { return reader.has_deleted_sessions(); })) {
    catalog_.write([](storage::Transaction& transaction) { transaction.remove_deleted_sessions(); },
                   storage::Space::kFrees);
    ++transactions;
  }
  return transactions;
}

MeshStack SessionStore::mesh_stack(std::string_view id, std::string_view principal) {
  return mesh_stack_from(get(id, principal).document);
}

MeshStack SessionStore::push_mesh(std::string_view id, std::string_view principal, const mesh::Mesh& mesh,
                                  const std::optional<storage::IdempotencyRow>& key) {
  if (!has_mesh_stack_) throw core::Error("conflict", "Mesh context manager is disabled on this server");
  if (mesh.device_ids.empty() && !mesh.axes.empty())
    throw core::Error("conflict", "AbstractMesh cannot be entered; enter a mesh with devices");
  const std::lock_guard held(stack_mutex_);
  MeshStack stack = mesh_stack(id, principal);
  if (stack.meshes.size() >= kDeepestStack) {
    throw core::Error("conflict", fmt::format("a session is inside of {} meshes at most", kDeepestStack));
  }
  stack.meshes.push_back(mesh);
  catalog_.write([&](storage::Transaction& transaction) {
    transaction.set_session_document(id, mesh_stack_document(stack));
    transaction.claim_key(key);
  });
  return stack;
}

MeshStack SessionStore::pop_mesh(std::string_view id, std::string_view principal) {
  const std::lock_guard held(stack_mutex_);
  MeshStack stack = mesh_stack(id, principal);
  if (stack.meshes.empty()) throw core::Error("conflict", "the session is inside of no mesh");
  stack.meshes.pop_back();
  catalog_.write(
      [&](storage::Transaction& transaction) { transaction.set_session_document(id, mesh_stack_document(stack)); });
  return stack;
}

std::shared_ptr<SessionQueue> SessionStore::queue(const std::string& id) {
  {
    const std::lock_guard held(mutex_);
    if (const auto known = queues_.find(id); known != queues_.end()) return known->second;
  }
  auto fresh = std::make_shared<SessionQueue>();
  const auto row = catalog_.read([&](storage::Reader& reader) { return reader.session(id); });
  if (row) fresh->set_default_mode(row->effects);
  if (row && row->halted_by) fresh->halt(*row->halted_by);
  if (row && row->state == storage::SessionState::kClosed) fresh->close();
  const std::lock_guard held(mutex_);
  return queues_.try_emplace(id, std::move(fresh)).first->second;
}

int64_t SessionStore::open_count() const {
  const std::lock_guard held(mutex_);
  return static_cast<int64_t>(queues_.size());
}

}  // namespace meshd::sessions
