// Sessions as rows: whose they are, how many there may be, how they are closed, and the meshes that they are inside of.
#include "service/sessions/session_store.h"

#include <gtest/gtest.h>

#include "service/mesh/mesh_document.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using mesh::Mesh;
using mesh::mesh_id;
using sessions::SessionStore;

Mesh line_of(int64_t devices) {
  Mesh out{{{"x", devices}}, {}, {}};
  for (int64_t i = 0; i < devices; ++i) out.device_ids.push_back(i);
  return out;
}

class Sessions : public ::testing::Test {
 protected:
  SessionStore make(bool has_mesh_stack = true, int64_t limit = 0) {
    return {store_->catalog(), clock_, has_mesh_stack, limit};
  }

  TempFolder folder_{TempFolder::Where::kMemory};
  OpenStore store_{folder_.path()};
  core::SystemClock clock_;
};

TEST_F(Sessions, new_session_is_open_and_found_by_its_principal) {
  SessionStore sessions = make();
  const std::string id = sessions.create("ann", "training").id;
  const storage::SessionRow row = sessions.get(id, "ann");
  EXPECT_EQ(row.name, "training");
  EXPECT_EQ(row.state, storage::SessionState::kOpen);
  EXPECT_EQ(row.next_job_number, 1);
  EXPECT_FALSE(row.closed.has_value());
}

TEST_F(Sessions, another_principals_session_is_answered_like_one_that_does_not_exist) {
  SessionStore sessions = make();
  const std::string id = sessions.create("ann", "").id;
  const auto refusal = [&](const std::string& asked) {
    try {
      static_cast<void>(sessions.get(asked, "bob"));
    } catch (const core::Error& error) {
      return std::string(error.code().word()) + ": " + error.detail();
    }
    return std::string("found");
  };
  EXPECT_EQ(refusal(id), "not_found: there is no session '" + id + "'");
  EXPECT_EQ(refusal("ses_1"), "not_found: there is no session 'ses_1'");
  EXPECT_EQ(error_word([&] { sessions.close(id, "bob"); }), "not_found");
  EXPECT_EQ(error_word([&] { sessions.push_mesh(id, "bob", line_of(2)); }), "not_found");
  EXPECT_EQ(error_word([&] { sessions.pop_mesh(id, "bob"); }), "not_found");
  EXPECT_EQ(error_word([&] { sessions.mesh_stack(id, "bob"); }), "not_found");
  EXPECT_TRUE(sessions.list("bob", {}).items.empty());
  EXPECT_EQ(sessions.get(id, "ann").state, storage::SessionState::kOpen) << "what bob asked for did nothing";
  EXPECT_TRUE(sessions.mesh_stack(id, "ann").meshes.empty());
}

TEST_F(Sessions, pages_list_each_session_of_the_principal_once) {
  SessionStore sessions = make();
  std::set<std::string> made;
  for (int i = 0; i < 5; ++i) made.insert(sessions.create("ann", "").id);
  sessions.create("bob", "");
  std::vector<std::string> seen;
  storage::PageRequest page{2, ""};
  do {
    const auto found = sessions.list("ann", page);
    EXPECT_LE(found.items.size(), 2U);
    for (const auto& row : found.items) seen.push_back(row.id);
    page.cursor = found.next;
  } while (!page.cursor.empty());
  EXPECT_EQ(seen, std::vector<std::string>(made.begin(), made.end()));
}

TEST_F(Sessions, limit_counts_each_principals_sessions_and_a_removed_one_makes_room) {
  SessionStore sessions = make(true, 2);
  const std::string first = sessions.create("ann", "").id;
  sessions.create("ann", "");
  EXPECT_EQ(error_word([&] { sessions.create("ann", ""); }), "limit_reached");
  EXPECT_EQ(sessions.list("ann", {}).items.size(), 2U) << "the one that was refused left no row";
  sessions.create("bob", "");
  sessions.close(first, "ann");
  EXPECT_EQ(error_word([&] { sessions.create("ann", ""); }), "limit_reached") << "a closed session still counts";
  sessions.remove(first);
  sessions.create("ann", "");
}

TEST_F(Sessions, closing_marks_the_row_and_tells_the_queue) {
  SessionStore sessions = make();
  const std::string id = sessions.create("ann", "").id;
  const auto queue = sessions.queue(id);
  EXPECT_FALSE(queue->is_closing());
  sessions.close(id, "ann");
  EXPECT_TRUE(queue->is_closing());
  EXPECT_EQ(sessions.get(id, "ann").state, storage::SessionState::kClosed);
  EXPECT_TRUE(sessions.get(id, "ann").closed.has_value());
  sessions.close(id, "ann");
  sessions.remove(id);
  EXPECT_EQ(error_word([&] { sessions.get(id, "ann"); }), "not_found");
}

TEST_F(Sessions, halted_session_is_halted_after_a_restart_and_goes_on_when_it_is_resumed) {
  const storage::SessionRow made = make().create("ann", "", storage::OnError::kHalt);
  EXPECT_EQ(made.on_error, storage::OnError::kHalt);
  store_->catalog().write([&](storage::Transaction& t) { EXPECT_TRUE(t.halt_session(made.id, 2)); });
  SessionStore sessions = make();
  EXPECT_FALSE(sessions.queue(made.id)->is_held(2));
  EXPECT_TRUE(sessions.queue(made.id)->is_held(3));
  EXPECT_EQ(error_word([&] { sessions.resume(made.id, "bob"); }), "not_found");
  sessions.resume(made.id, "ann");
  EXPECT_FALSE(sessions.queue(made.id)->is_held(3));
  EXPECT_EQ(sessions.get(made.id, "ann").state, storage::SessionState::kOpen);
  sessions.close(made.id, "ann");
  EXPECT_EQ(error_word([&] { sessions.resume(made.id, "ann"); }), "session_closed");
  EXPECT_TRUE(make().queue(made.id)->is_closing());
}

TEST_F(Sessions, resume_with_a_key_that_is_taken_changes_nothing) {
  SessionStore sessions = make();
  const std::string id = sessions.create("ann", "", storage::OnError::kHalt).id;
  const auto halt = [&](int64_t number) {
    store_->catalog().write([&](storage::Transaction& t) { EXPECT_TRUE(t.halt_session(id, number)); });
    sessions.queue(id)->halt(number);
  };
  const storage::IdempotencyRow key{"ann", "resumeSession", "k", "print", "", clock_.wall()};
  halt(1);
  sessions.resume(id, "ann", key);
  const auto known =
      store_->catalog().read([](storage::Reader& r) { return r.idempotency("ann", "resumeSession", "k"); });
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->made, id);
  halt(2);
  EXPECT_EQ(error_word([&] { sessions.resume(id, "ann", key); }), "idempotency_in_progress");
  EXPECT_EQ(sessions.get(id, "ann").halted_by, 2);
  EXPECT_TRUE(sessions.queue(id)->is_held(3));
}

TEST_F(Sessions, queue_is_the_same_for_all_who_ask_until_the_session_is_removed) {
  SessionStore sessions = make();
  const std::string id = sessions.create("ann", "").id;
  const auto queue = sessions.queue(id);
  EXPECT_EQ(sessions.queue(id), queue);
  EXPECT_NE(sessions.queue(sessions.create("ann", "").id), queue);
  EXPECT_EQ(sessions.open_count(), 2);
  sessions.remove(id);
  EXPECT_EQ(sessions.open_count(), 1);
}

TEST_F(Sessions, meshes_are_entered_and_left_last_in_first_out) {
  SessionStore sessions = make();
  const std::string id = sessions.create("ann", "").id;
  EXPECT_TRUE(sessions.mesh_stack(id, "ann").current().is_empty()) << "the base is the empty mesh";
  sessions.push_mesh(id, "ann", line_of(2));
  EXPECT_EQ(mesh_id(sessions.push_mesh(id, "ann", line_of(4)).current()), mesh_id(line_of(4)));
  EXPECT_EQ(mesh_id(sessions.pop_mesh(id, "ann").current()), mesh_id(line_of(2)));
  EXPECT_TRUE(sessions.pop_mesh(id, "ann").current().is_empty());
  EXPECT_EQ(error_word([&] { sessions.pop_mesh(id, "ann"); }), "conflict");
}

TEST_F(Sessions, stack_is_kept_by_the_row) {
  const std::string id = make().create("ann", "").id;
  Mesh typed = line_of(4);
  typed.axis_types = {mesh::AxisType::kExplicit};
  {
    SessionStore before = make();
    before.push_mesh(id, "ann", line_of(2));
    before.push_mesh(id, "ann", typed);
  }
  SessionStore after = make();
  const sessions::MeshStack stack = after.mesh_stack(id, "ann");
  ASSERT_EQ(stack.meshes.size(), 2U);
  EXPECT_EQ(stack.meshes[0], line_of(2));
  EXPECT_EQ(stack.meshes[1], typed);
}

TEST_F(Sessions, abstract_meshes_are_not_entered) {
  SessionStore sessions = make();
  const std::string id = sessions.create("ann", "").id;
  EXPECT_EQ(error_word([&] { sessions.push_mesh(id, "ann", Mesh{{{"x", 2}}, {}, {}}); }), "conflict");
  EXPECT_TRUE(sessions.mesh_stack(id, "ann").meshes.empty());
}

TEST_F(Sessions, no_mesh_is_entered_where_the_server_forbids_it) {
  SessionStore sessions = make(false);
  const std::string id = sessions.create("ann", "").id;
  EXPECT_EQ(error_word([&] { sessions.push_mesh(id, "ann", line_of(2)); }), "conflict");
}

TEST_F(Sessions, stack_is_64_deep_at_most) {
  SessionStore sessions = make();
  const std::string id = sessions.create("ann", "").id;
  for (int i = 0; i < 64; ++i) sessions.push_mesh(id, "ann", line_of(2));
  EXPECT_EQ(error_word([&] { sessions.push_mesh(id, "ann", line_of(2)); }), "conflict");
  EXPECT_EQ(sessions.mesh_stack(id, "ann").meshes.size(), 64U);
}

TEST(MeshStack, documents_of_others_are_refused) {
  EXPECT_TRUE(sessions::mesh_stack_from("").meshes.empty());
  EXPECT_TRUE(sessions::mesh_stack_from("{}").meshes.empty());
  EXPECT_EQ(error_word([] { sessions::mesh_stack_from("[1]"); }), "internal");
  EXPECT_EQ(error_word([] { sessions::mesh_stack_from("{\"meshes\":"); }), "internal");
}

}  // namespace
}  // namespace meshd::testing
