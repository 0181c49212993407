#include "service/sessions/session_store.h"

#include <algorithm>

#include "service/core/error.h"
#include "service/core/ids.h"

namespace meshd::sessions {
namespace {

constexpr size_t kDeepestStack = 64;

bool meet(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& id) { return b.contains(id); });
}

}  // namespace

void Line::enter(int64_t number, bool ordered, ArrayUses uses) {
  const std::lock_guard held(mutex_);
  open_.insert(number);
  if (ordered) ordered_.insert(number);
  if (!uses.reads.empty() || !uses.updates.empty()) uses_.emplace(number, std::move(uses));
}

bool Line::wait_for_arrays(int64_t number, std::chrono::milliseconds time) {
  std::unique_lock held(mutex_);
  return changed_.wait_for(held, time, [&] {
    const auto mine = uses_.find(number);
    if (mine == uses_.end()) return true;
    return std::none_of(uses_.begin(), mine, [&](const auto& before) {
      return meet(before.second.updates, mine->second.reads) || meet(before.second.updates, mine->second.updates);
    });
  });
}

bool Line::wait_for_readers(int64_t number, std::chrono::milliseconds time) {
  std::unique_lock held(mutex_);
  return changed_.wait_for(held, time, [&] {
    const auto mine = uses_.find(number);
    if (mine == uses_.end()) return true;
    return std::none_of(uses_.begin(), mine,
                        [&](const auto& before) { return meet(before.second.reads, mine->second.updates); });
  });
}

void Line::wait_turn(int64_t number) {
  std::unique_lock held(mutex_);
  changed_.wait(held, [&] { return ordered_.empty() || *ordered_.begin() >= number; });
}

bool Line::wait_turn_for(int64_t number, std::chrono::milliseconds time) {
  std::unique_lock held(mutex_);
  return changed_.wait_for(held, time, [&] { return ordered_.empty() || *ordered_.begin() >= number; });
}

void Line::close() {
  const std::lock_guard held(mutex_);
  is_closing_ = true;
}

bool Line::is_closing() const {
  const std::lock_guard held(mutex_);
  return is_closing_;
}

void Line::leave(int64_t number) {
  {
    const std::lock_guard held(mutex_);
    open_.erase(number);
    ordered_.erase(number);
    uses_.erase(number);
  }
  changed_.notify_all();
}

void Line::wait_idle() {
  std::unique_lock held(mutex_);
  if (open_.empty()) return;
  const int64_t last = *open_.rbegin();
  changed_.wait(held, [&] { return open_.empty() || *open_.begin() > last; });
}

int64_t Line::open_count() const {
  const std::lock_guard held(mutex_);
  return static_cast<int64_t>(open_.size());
}

storage::SessionRow SessionStore::create(const std::string& principal, const std::string& name) {
  storage::SessionRow row;
  row.id = core::new_id("ses", clock_);
  row.principal = principal;
  row.name = name;
  row.created = clock_.wall();
  row.document = "{}";
  catalog_.write([&](storage::Transaction& transaction) { transaction.insert_session(row); });
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

void SessionStore::remove(const std::string& id, std::string_view principal) {
  storage::SessionRow row = get(id, principal);
  row.state = storage::SessionState::kClosed;
  row.closed = clock_.wall();
  catalog_.write([&](storage::Transaction& transaction) { transaction.update_session(row); });
  line(id)->close();
  line(id)->wait_idle();
  catalog_.write([&](storage::Transaction& transaction) { transaction.delete_session(id); });
  const std::lock_guard held(mutex_);
  lines_.erase(id);
}

MeshStack SessionStore::mesh_stack(std::string_view id, std::string_view principal) {
  return mesh_stack_from(get(id, principal).document);
}

MeshStack SessionStore::push_mesh(std::string_view id, std::string_view principal, const mesh::Mesh& mesh) {
  if (!has_mesh_stack_) throw core::Error("conflict", "Mesh context manager is disabled on this server");
  if (mesh.device_ids.empty() && !mesh.axes.empty())
    throw core::Error("conflict", "AbstractMesh cannot be entered; enter a mesh with devices");
  const std::lock_guard held(stack_mutex_);
  storage::SessionRow row = get(id, principal);
  MeshStack stack = mesh_stack_from(row.document);
  if (stack.meshes.size() >= kDeepestStack) {
    throw core::Error("conflict", "a session is inside of " + std::to_string(kDeepestStack) + " meshes at most");
  }
  stack.meshes.push_back(mesh);
  row.document = mesh_stack_document(stack);
  catalog_.write([&](storage::Transaction& transaction) { transaction.update_session(row); });
  return stack;
}

MeshStack SessionStore::pop_mesh(std::string_view id, std::string_view principal) {
  const std::lock_guard held(stack_mutex_);
  storage::SessionRow row = get(id, principal);
  MeshStack stack = mesh_stack_from(row.document);
  if (stack.meshes.empty()) throw core::Error("conflict", "the session is inside of no mesh");
  stack.meshes.pop_back();
  row.document = mesh_stack_document(stack);
  catalog_.write([&](storage::Transaction& transaction) { transaction.update_session(row); });
  return stack;
}

std::shared_ptr<Line> SessionStore::line(const std::string& id) {
  const std::lock_guard held(mutex_);
  auto& line = lines_[id];
  if (line == nullptr) line = std::make_shared<Line>();
  return line;
}

int64_t SessionStore::open_count() const {
  const std::lock_guard held(mutex_);
  return static_cast<int64_t>(lines_.size());
}

}  // namespace meshd::sessions
