// Each kind of row: what goes in comes out, and the rules that rows keep by themselves.
#include <gtest/gtest.h>

#include <optional>

#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using namespace storage;

class StorageRows : public ::testing::Test {
 protected:
  void write(const std::function<void(Transaction&)>& f) { (*store_)->catalog().write(f); }
  template <typename F>
  auto read(F&& f) {
    return (*store_)->catalog().read(std::forward<F>(f));
  }
  void reopen() {
    store_.reset();
    store_.emplace(folder_.path());
  }
  TempFolder folder_{TempFolder::Where::kMemory};
  std::optional<OpenStore> store_{folder_.path()};
};

TEST_F(StorageRows, mesh_seen_by_two_principals_is_interned_once) {
  const MeshRow ann{"mesh_1", "ann", "{\"axes\":[]}", at(5)};
  const MeshRow bob{"mesh_1", "bob", "{\"axes\":[]}", at(6)};
  write([&](Transaction& t) {
    EXPECT_TRUE(t.put_mesh(ann));
    EXPECT_FALSE(t.put_mesh(ann));
    EXPECT_TRUE(t.put_mesh(bob));
  });
  const auto found = read([](Reader& r) { return r.mesh("mesh_1", "bob"); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->document, ann.document);
  EXPECT_EQ(found->created, at(6));
  EXPECT_FALSE(read([](Reader& r) { return r.mesh("mesh_1", "eve"); }));
}

TEST_F(StorageRows, mesh_deleted_by_one_stays_for_the_other) {
  write([](Transaction& t) {
    t.put_mesh({"mesh_1", "ann", "{}", at(1)});
    t.put_mesh({"mesh_1", "bob", "{}", at(1)});
    EXPECT_TRUE(t.delete_mesh("mesh_1", "ann"));
    EXPECT_FALSE(t.delete_mesh("mesh_1", "ann"));
    EXPECT_FALSE(t.mesh("mesh_1", "ann"));
    EXPECT_TRUE(t.mesh("mesh_1", "bob"));
  });
}

TEST_F(StorageRows, program_has_a_name_for_each_principal) {
  write([](Transaction& t) {
    EXPECT_TRUE(t.put_program({"prog_1", "ann", "stablehlo", "text", "trees", at(1), "mine", "secret"}));
    EXPECT_TRUE(t.put_program({"prog_1", "bob", "stablehlo", "text", "trees", at(2), "other", ""}));
    EXPECT_FALSE(t.put_program({"prog_1", "ann", "stablehlo", "text", "trees", at(3), "later", "later"}));
  });
  const auto ann = read([](Reader& r) { return r.program("prog_1", "ann"); });
  const auto bob = read([](Reader& r) { return r.programs("bob", {}).items.at(0); });
  EXPECT_EQ((std::vector<std::string>{"mine", "secret", "trees"}),
            (std::vector<std::string>{ann->name, ann->doc, ann->document}));
  EXPECT_EQ((std::vector<std::string>{"other", "", "trees"}),
            (std::vector<std::string>{bob.name, bob.doc, bob.document}));
  EXPECT_EQ(at(1), ann->created);
  EXPECT_EQ(at(2), bob.created);
}

TEST_F(StorageRows, mesh_content_stays_while_an_array_names_it) {
  write([](Transaction& t) {
    t.put_mesh({"mesh_1", "ann", "{}", at(1)});
    ArrayRow row = array_row("arr_1");
    row.mesh = "mesh_1";
    t.insert_array(row);
    t.delete_mesh("mesh_1", "ann");
    EXPECT_TRUE(t.mesh_document("mesh_1"));
    t.delete_array("arr_1");
    EXPECT_FALSE(t.mesh_document("mesh_1"));
  });
}

TEST_F(StorageRows, program_read_back_has_its_text_but_lists_leave_it_out) {
  const std::string text("module { \0 }", 12);
  write([&](Transaction& t) { EXPECT_TRUE(t.put_program({"prog_1", "ann", "stablehlo", text, "{}", at(1)})); });
  EXPECT_EQ(read([](Reader& r) { return r.program("prog_1", "ann"); })->text, text);
  EXPECT_EQ(read([](Reader& r) { return r.program_content("prog_1"); })->format, "stablehlo");
  const auto page = read([](Reader& r) { return r.programs("ann", {}); });
  ASSERT_EQ(page.items.size(), 1U);
  EXPECT_EQ(page.items[0].text, "");
}

TEST_F(StorageRows, program_content_goes_when_the_last_job_that_named_it_is_over) {
  JobRow first = job_row("job_1");
  JobRow second = job_row("job_2", "ses_1", 1);
  JobRow third = job_row("job_3");
  for (JobRow* row : {&first, &second, &third}) row->program = "prog_1";
  const auto is_there = [&] { return read([](Reader& r) { return r.has_program_content("prog_1"); }); };
  write([&](Transaction& t) {
    t.put_program({"prog_1", "ann", "stablehlo", "text", "{}", at(1)});
    t.insert_session(session_row("ses_1"));
    for (const JobRow* row : {&first, &second, &third}) t.insert_job(*row);
    t.delete_program("prog_1", "ann");
  });
  EXPECT_TRUE(is_there());
  first.state = JobState::kRunning;
  write([&](Transaction& t) { EXPECT_TRUE(t.update_job(first)); });
  EXPECT_TRUE(is_there());
  first.state = JobState::kDone;
  write([&](Transaction& t) { EXPECT_TRUE(t.update_job(first)); });
  EXPECT_TRUE(is_there());
  write([](Transaction& t) { t.delete_session("ses_1"); });
  EXPECT_TRUE(is_there());
  write([](Transaction& t) { t.delete_job("job_3", "ann"); });
  EXPECT_FALSE(is_there());
}

TEST_F(StorageRows, program_that_somebody_sees_stays_when_its_jobs_are_over) {
  write([](Transaction& t) {
    t.put_program({"prog_1", "ann", "stablehlo", "text", "{}", at(1)});
    JobRow job = job_row("job_1");
    job.program = "prog_1";
    t.insert_job(job);
    job.state = JobState::kFailed;
    EXPECT_TRUE(t.update_job(job));
  });
  EXPECT_TRUE(read([](Reader& r) { return r.has_program_content("prog_1"); }));
}

TEST_F(StorageRows, program_content_stays_while_a_queued_job_names_it) {
  write([](Transaction& t) {
    t.put_program({"prog_1", "ann", "stablehlo", "text", "{}", at(1)});
    JobRow job = job_row("job_1");
    job.program = "prog_1";
    t.insert_job(job);
    t.delete_program("prog_1", "ann");
    EXPECT_FALSE(t.program("prog_1", "ann"));
    EXPECT_TRUE(t.program_content("prog_1"));
  });
}

TEST_F(StorageRows, array_read_back_is_what_was_written) {
  ArrayRow row = array_row("arr_1");
  row.session = "ses_1";
  row.name = "weights";
  row.shape = {4, 0, 9223372036854775807};
  row.mesh = "mesh_1";
  row.sharding = "x,,y.z";
  row.durability = Durability::kMemory;
  row.state = ArrayState::kLost;
  row.version = 7;
  row.committed = true;
  row.reserved_by = "job_1";
  row.reason = "why";
  write([&](Transaction& t) { t.insert_array(row); });
  const auto found = read([](Reader& r) { return r.array("arr_1", "ann"); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->shape, row.shape);
  EXPECT_EQ(found->durability, row.durability);
  EXPECT_EQ(found->state, row.state);
  EXPECT_EQ(found->version, 7);
  EXPECT_TRUE(found->committed);
  EXPECT_EQ(found->session + found->name + found->mesh + found->sharding + found->reserved_by + found->reason,
            row.session + row.name + row.mesh + row.sharding + row.reserved_by + row.reason);
  EXPECT_EQ(found->created, row.created);
  EXPECT_FALSE(read([](Reader& r) { return r.array("arr_1", "bob"); }));
}

TEST_F(StorageRows, array_of_rank_0_has_an_empty_shape) {
  ArrayRow row = array_row("arr_1");
  row.shape = {};
  write([&](Transaction& t) { t.insert_array(row); });
  EXPECT_TRUE(read([](Reader& r) { return r.array("arr_1"); })->shape.empty());
}

TEST_F(StorageRows, array_inserted_twice_is_a_conflict) {
  write([](Transaction& t) { t.insert_array(array_row("arr_1")); });
  EXPECT_EQ(error_word([&] { write([](Transaction& t) { t.insert_array(array_row("arr_1")); }); }), "conflict");
}

TEST_F(StorageRows, name_is_free_unless_an_array_holds_it_or_the_next_one_is_to) {
  const auto named = [](const char* id, const char* name, bool holds_name) {
    ArrayRow row = array_row(id);
    row.name = name;
    row.holds_name = holds_name;
    return row;
  };
  write([&](Transaction& t) {
    t.insert_array(named("arr_1", "shared", false));
    t.insert_array(named("arr_2", "shared", false));
    t.insert_array(named("arr_3", "held", true));
  });
  const std::vector<std::string> shared{"arr_1", "arr_2"}, holder{"arr_3"};
  const auto taken = [&](std::string_view name, bool is_unique, std::span<const std::string> leaving) {
    return error_word([&] {
      (*store_)->catalog().read(
          [&](Reader& r) { r.require_free_name(array_row("x").principal, name, is_unique, leaving); });
    });
  };
  EXPECT_EQ(taken("shared", false, {}), "");
  EXPECT_EQ(taken("shared", true, {}), "name_taken");
  EXPECT_EQ(taken("shared", true, holder), "name_taken");
  EXPECT_EQ(taken("shared", true, shared), "");
  for (const bool is_unique : {false, true}) {
    EXPECT_EQ(taken("held", is_unique, {}), "name_taken");
    EXPECT_EQ(taken("held", is_unique, holder), "");
    EXPECT_EQ(taken("", is_unique, {}), "");
  }
}

TEST_F(StorageRows, shard_replaced_or_deleted_hands_its_blob_to_the_collector) {
  write([](Transaction& t) {
    t.insert_array(array_row("arr_1"));
    t.put_shard({"arr_1", 0, {"arr_1.v1.s0", 10, 0xffffffffffffffffULL}});
    t.put_shard({"arr_1", 1, {"arr_1.v1.s1", 10, 2}});
    EXPECT_EQ(t.shards("arr_1")[0].blob.checksum, 0xffffffffffffffffULL);
    t.put_shard({"arr_1", 0, {"arr_1.v2.s0", 10, 3}});
  });
  EXPECT_EQ((*store_)->catalog().take_dropped_blobs(), std::vector<std::string>{"arr_1.v1.s0"});
  write([](Transaction& t) { t.delete_array("arr_1"); });
  EXPECT_EQ((*store_)->catalog().take_dropped_blobs(), (std::vector<std::string>{"arr_1.v2.s0", "arr_1.v1.s1"}));
}

TEST_F(StorageRows, donation_is_taken_by_one_job_only) {
  write([](Transaction& t) {
    t.insert_array(array_row("arr_1"));
    t.reserve_array("arr_1", "job_1");
    t.reserve_array("arr_1", "job_1");
    EXPECT_EQ(error_word([&] { t.reserve_array("arr_1", "job_2"); }), "array_in_use");
    EXPECT_EQ(error_word([&] { t.consume_array("arr_1", "job_2"); }), "array_in_use");
    EXPECT_EQ(error_word([&] { t.delete_array("arr_1"); }), "array_in_use");
    t.consume_array("arr_1", "job_1");
    EXPECT_EQ(error_word([&] { t.reserve_array("arr_1", "job_1"); }), "array_donated");
    EXPECT_EQ(t.array("arr_1")->state, ArrayState::kDonated);
    EXPECT_EQ(t.array("arr_1")->version, 2);
    EXPECT_EQ(error_word([&] { t.reserve_array("arr_2", "job_1"); }), "not_found");
  });
}

TEST_F(StorageRows, donation_of_a_failed_job_is_released) {
  write([](Transaction& t) {
    t.insert_array(array_row("arr_1"));
    t.insert_array(array_row("arr_2"));
    t.reserve_array("arr_1", "job_1");
    t.reserve_array("arr_2", "job_1");
    EXPECT_EQ(t.release_arrays("job_1", "ann"), 2);
    t.reserve_array("arr_1", "job_2");
  });
}

TEST_F(StorageRows, donation_of_pending_or_lost_arrays_is_refused) {
  write([](Transaction& t) {
    t.insert_array(array_row("arr_1", ArrayState::kPending));
    t.insert_array(array_row("arr_2", ArrayState::kLost));
    EXPECT_EQ(error_word([&] { t.reserve_array("arr_1", "job_1"); }), "conflict");
    EXPECT_EQ(error_word([&] { t.reserve_array("arr_2", "job_1"); }), "array_lost");
  });
}

TEST_F(StorageRows, stored_arrays_are_counted_for_each_principal_while_they_have_data) {
  write([](Transaction& t) {
    t.insert_array(array_row("arr_1"));
    t.insert_array(array_row("arr_2", ArrayState::kPending));
    t.insert_array(array_row("arr_3", ArrayState::kDonated));
    t.insert_array(array_row("arr_4", ArrayState::kLost));
    ArrayRow memory = array_row("arr_5");
    memory.durability = Durability::kMemory;
    memory.principal = "bob";
    t.insert_array(memory);
  });
  const auto found = read([](Reader& r) { return r.stored_arrays(); });
  ASSERT_EQ(2U, found.size());
  EXPECT_EQ("ann", found[0].principal);
  EXPECT_EQ(2, found[0].count);
  EXPECT_EQ(48, found[0].bytes);
  EXPECT_EQ("bob", found[1].principal);
  EXPECT_EQ(24, found[1].bytes);
  EXPECT_EQ(4, read([](Reader& r) { return r.count_of(Counted::kArrays, "ann"); }));
  EXPECT_EQ(0, read([](Reader& r) { return r.count_of(Counted::kArrays, "eve"); }));
}

TEST_F(StorageRows, what_one_has_is_given_to_another) {
  write([](Transaction& t) {
    t.insert_array(array_row("arr_1"));
    t.insert_session(session_row("ses_1"));
    t.insert_job(job_row("job_1", "ses_1", 1));
    for (const char* who : {"ann", "bob"}) {
      t.put_mesh({"mesh_1", who, "{}", at(who[0])});
      t.put_program({"prog_1", who, "stablehlo", "text", "", at(who[0]), who, ""});
      IdempotencyRow key{who, "run", "k", "print", std::string("job_") + who, at(1)};
      t.insert_idempotency(key);
      key.key = std::string("only ") + who;
      t.insert_idempotency(key);
    }
    t.put_mesh({"mesh_2", "ann", "{}", at(1)});
    t.put_program({"prog_2", "ann", "stablehlo", "text 2", "", at(1), "mine", ""});
    t.give_to("ann", "bob");
  });
  read([](Reader& r) {
    EXPECT_TRUE(r.array("arr_1", "bob") && r.session("ses_1", "bob") && r.job("job_1", "bob"));
    EXPECT_TRUE(r.mesh("mesh_2", "bob") && r.program("prog_2", "bob"));
    EXPECT_EQ("bob", r.program("prog_1", "bob")->name);
    EXPECT_EQ("job_bob", r.idempotency("bob", "run", "k")->made);
    EXPECT_EQ("job_ann", r.idempotency("bob", "run", "only ann")->made);
    EXPECT_FALSE(r.idempotency("ann", "run", "k") || r.idempotency("ann", "run", "only ann"));
    for (const Counted what :
         {Counted::kArrays, Counted::kSessions, Counted::kJobs, Counted::kPrograms, Counted::kMeshes}) {
      EXPECT_EQ(0, r.count_of(what, "ann"));
    }
  });
}

TEST_F(StorageRows, giving_passes_over_jobs_of_deleted_sessions) {
  constexpr int kJobs = 1100;  // more than a deletion removes at once
  write([](Transaction& t) {
    SessionRow session = session_row("ses_1");
    session.principal = "bob";
    t.insert_session(session);
    for (int i = 0; i < kJobs; ++i) {
      JobRow job = job_row("job_" + std::to_string(i), "ses_1", i + 1);
      job.principal = "bob";
      t.insert_job(job);
    }
    t.delete_session("ses_1");
    for (int i = 0; i < kJobs; ++i) t.insert_job(job_row("job_" + std::to_string(i)));
    t.give_to("ann", "bob");
  });
  read([&](Reader& r) { EXPECT_EQ(r.count_of(Counted::kJobs, "bob"), kJobs); });
}

TEST_F(StorageRows, session_halts_only_where_it_is_to_and_names_the_first_job) {
  write([](Transaction& t) {
    SessionRow row = session_row("ses_1");
    row.on_error = OnError::kHalt;
    t.insert_session(row);
    t.insert_session(session_row("ses_2"));
    EXPECT_FALSE(t.halt_session("ses_2", 1));
    EXPECT_EQ(t.session("ses_2")->state, SessionState::kOpen);
    EXPECT_TRUE(t.halt_session("ses_1", 5));
    EXPECT_TRUE(t.halt_session("ses_1", 3));
    EXPECT_TRUE(t.halt_session("ses_1", 4));
    EXPECT_EQ(t.session("ses_1")->state, SessionState::kHalted);
    EXPECT_EQ(t.session("ses_1")->halted_by, 3);
    t.set_session_document("ses_1", "{\"meshes\": []}");
    EXPECT_EQ(t.session("ses_1")->state, SessionState::kHalted);
    t.resume_session("ses_1");
    EXPECT_EQ(t.session("ses_1")->state, SessionState::kOpen);
    EXPECT_EQ(t.session("ses_1")->halted_by, std::nullopt);
    t.resume_session("ses_1");
    EXPECT_TRUE(t.halt_session("ses_1", 6));
    t.close_session("ses_1", at(9));
    EXPECT_FALSE(t.halt_session("ses_1", 7));
    EXPECT_EQ(error_word([&] { t.resume_session("ses_1"); }), "session_closed");
    EXPECT_EQ(t.session("ses_1")->halted_by, 6) << "its jobs behind 6 are still held after a restart";
  });
}

TEST_F(StorageRows, closed_session_takes_no_jobs_and_keeps_its_counters) {
  write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    EXPECT_EQ(t.next_job_number("ses_1"), 1);
    EXPECT_EQ(t.next_job_number("ses_1"), 2);
    t.close_session("ses_1", at(9));
    EXPECT_EQ(t.session("ses_1")->next_job_number, 3);
    EXPECT_EQ(t.session("ses_1")->closed, at(9));
    EXPECT_EQ(error_word([&] { (void)t.next_job_number("ses_1"); }), "session_closed");
    EXPECT_EQ(error_word([&] { (void)t.next_job_number("ses_2"); }), "not_found");
  });
}

TEST_F(StorageRows, job_ids_are_unique_for_each_principal) {
  write([](Transaction& t) {
    for (const char* principal : {"ann", "bob"}) {
      const std::string session = std::string("ses_") + principal;
      t.insert_session(session_row(session, principal));
      JobRow job = job_row("job_1", session, t.next_job_number(session));
      job.principal = principal;
      t.insert_job(job);
      std::vector<EffectRow> rows = {effect_row("job_1", 0, principal)};
      t.append_effects(session, rows);
      ArrayRow array = array_row(std::string("arr_") + principal);
      array.principal = principal;
      t.insert_array(array);
      t.reserve_array(array.id, "job_1");
    }
    JobRow done = *t.job("job_1", "ann");
    done.state = JobState::kDone;
    EXPECT_TRUE(t.update_job(done));
    EXPECT_EQ(t.job("job_1", "bob")->state, JobState::kQueued);
    EXPECT_EQ(t.job_of_session("ses_bob", "job_1")->principal, "bob");
    EXPECT_EQ(t.release_arrays("job_1", "ann"), 1);
    EXPECT_EQ(t.array("arr_bob")->reserved_by, "job_1");
    EXPECT_EQ(t.effects("ses_bob", 0, 10).size(), 1U);
    EXPECT_TRUE(t.delete_job("job_1", "ann"));
    EXPECT_TRUE(t.job("job_1", "bob"));
  });
  JobRow again = job_row("job_1", "ses_bob", 9);
  again.principal = "bob";
  EXPECT_THROW(write([&](Transaction& t) { t.insert_job(again); }), core::Error);
}

TEST_F(StorageRows, session_deleted_takes_jobs_effects_and_reservations_along) {
  write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    t.insert_job(job_row("job_1", "ses_1", t.next_job_number("ses_1")));
    t.insert_array(array_row("arr_1"));
    t.reserve_array("arr_1", "job_1");
    std::vector<EffectRow> rows = {effect_row("job_1", 0, "[1]")};
    t.append_effects("ses_1", rows);
    EXPECT_TRUE(t.delete_session("ses_1"));
    EXPECT_FALSE(t.delete_session("ses_1"));
    EXPECT_FALSE(t.job("job_1", "ann"));
    EXPECT_TRUE(t.effects("ses_1", 0, 10).empty());
    EXPECT_EQ(t.array("arr_1")->reserved_by, "");
  });
}

TEST_F(StorageRows, deleted_session_of_many_rows_is_invisible_at_once_and_removed_in_parts) {
  constexpr int64_t kJobs = 1500, kEffects = 2000;
  write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    for (int64_t i = 0; i < kJobs; ++i)
      t.insert_job(job_row("job_" + std::to_string(i), "ses_1", t.next_job_number("ses_1")));
    std::vector<EffectRow> effects;
    for (int64_t i = 0; i < kEffects; ++i) effects.push_back(effect_row("job_0", i, "[1]"));
    effects.back().is_queued = true;
    t.append_effects("ses_1", effects);
    CallbackRow callback;
    callback.session = "ses_1";
    callback.job = "job_1";
    t.insert_callback(callback);
    InfeedRow infeed{"ses_1", "in", 0, "a", at(1)};
    t.append_infeed(infeed);
    t.insert_array(array_row("arr_1"));
    t.reserve_array("arr_1", "job_7");
    EXPECT_TRUE(t.delete_session("ses_1"));
    EXPECT_FALSE(t.delete_session("ses_1"));
  });
  const auto see_nothing = [&] {
    read([](Reader& r) {
      EXPECT_FALSE(r.session("ses_1"));
      EXPECT_TRUE(r.sessions("ann", {}).items.empty());
      EXPECT_EQ(r.count_of(Counted::kSessions, "ann") + r.count_of(Counted::kJobs, "ann"), 0);
      EXPECT_FALSE(r.job("job_1499", "ann"));
      EXPECT_FALSE(r.job_state("job_1499", "ann"));
      EXPECT_TRUE(r.jobs("ann", {}, {}).items.empty());
      const JobFilter filter{.session = "ses_1", .state = {}};
      EXPECT_TRUE(r.jobs("ann", filter, {}).items.empty());
      EXPECT_TRUE(r.queued_jobs({}).items.empty());
      EXPECT_TRUE(r.effects("ses_1", 0, 10).empty());
      EXPECT_TRUE(r.outgoing("ses_1", "loss", 0, 10).empty());
      EXPECT_TRUE(r.infeeds("ses_1", "in", 0, 10).empty());
      EXPECT_TRUE(r.infeed_queues("ses_1").empty());
      EXPECT_FALSE(r.callback("ses_1", 1));
      EXPECT_TRUE(r.open_callbacks("ses_1", 0, 10).empty());
    });
  };
  see_nothing();
  EXPECT_TRUE(read([](Reader& r) { return r.has_deleted_sessions(); }));
  write([](Transaction& t) {
    EXPECT_EQ(error_word([&] { static_cast<void>(t.next_job_number("ses_1")); }), "not_found");
    t.insert_job(job_row("job_1499"));  // its id is free
  });
  int64_t parts = 1;
  reopen();  // as after a crash in between
  write([](Transaction& t) { EXPECT_TRUE(t.delete_job("job_1499", "ann")); });
  for (; read([](Reader& r) { return r.has_deleted_sessions(); }); ++parts) {
    see_nothing();
    write([](Transaction& t) { t.remove_deleted_sessions(); });
  }
  EXPECT_EQ(parts, 8) << "3,502 rows, five hundred in each";
  read([](Reader& r) { EXPECT_EQ(r.array("arr_1")->reserved_by, ""); });
  write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    EXPECT_EQ(t.next_job_number("ses_1"), 1);
    EXPECT_TRUE(t.effects("ses_1", 0, 10).empty());
  });
}

TEST_F(StorageRows, deleted_session_of_large_rows_is_removed_in_parts) {
  write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    std::vector<EffectRow> effects;
    for (int64_t i = 0; i < 4; ++i) effects.push_back(effect_row("job_0", i, std::string(700 << 10, 'x')));
    t.append_effects("ses_1", effects);
    t.delete_session("ses_1");
    EXPECT_TRUE(t.has_deleted_sessions()) << "two effects have more than 1 MiB";
    t.remove_deleted_sessions();
    EXPECT_TRUE(t.has_deleted_sessions());
    t.remove_deleted_sessions();
    EXPECT_FALSE(t.has_deleted_sessions());
  });
}

TEST_F(StorageRows, job_read_back_is_what_was_written) {
  JobRow row = job_row("job_1");
  row.program = "prog_1";
  row.state = JobState::kFailed;
  row.attempt = 2;
  row.request = std::string("\0\xff", 2);
  row.answer = "answer";
  row.error_code = "crashed";
  row.error_detail = "detail";
  row.started = at(10);
  row.deadline = at(30);
  write([&](Transaction& t) { t.insert_job(row); });
  const auto found = read([](Reader& r) { return r.job("job_1", "ann"); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state, JobState::kFailed);
  EXPECT_EQ(found->attempt, 2);
  EXPECT_EQ(found->request, row.request);
  EXPECT_EQ(found->program + found->answer + found->error_code + found->error_detail,
            row.program + row.answer + row.error_code + row.error_detail);
  EXPECT_EQ(found->started, row.started);
  EXPECT_EQ(found->finished, std::nullopt);
  EXPECT_EQ(found->deadline, row.deadline);
}

// Of every pair of states.
TEST_F(StorageRows, job_changes_its_state_as_the_table_of_transitions_allows) {
  constexpr JobState kStates[] = {JobState::kQueued, JobState::kRunning, JobState::kDone, JobState::kFailed,
                                  JobState::kCancelled};
  int64_t changed = 0;
  write([&](Transaction& t) {
    for (const JobState from : kStates) {
      for (const JobState to : kStates) {
        JobRow row = job_row("job_" + std::string(to_string(from)) + "_" + std::string(to_string(to)));
        row.state = from;
        row.answer = "before";
        t.insert_job(row);
        row.state = to;
        row.answer = "after";
        row.bytes = BlobRef{"of_" + row.id, 1, 1};
        const bool is_allowed = may_change(from, to);
        EXPECT_EQ(t.update_job(row), is_allowed) << row.id;
        const JobRow now = *t.job(row.id, "ann");
        EXPECT_EQ(now.state, is_allowed ? to : from) << row.id;
        EXPECT_EQ(now.answer, is_allowed ? "after" : "before") << row.id;
        changed += is_allowed ? 1 : 0;
      }
    }
    // Blobs are dropped by ends that are written, and by no others.
    EXPECT_EQ(t.dropped_blobs().size(), 6U);
  });
  EXPECT_EQ(changed, 8) << "out of queued four, out of running four, out of the others none";
}

TEST_F(StorageRows, job_that_is_over_loses_its_request) {
  write([](Transaction& t) {
    JobRow row = job_row("job_1");
    t.insert_job(row);
    row.state = JobState::kRunning;
    EXPECT_TRUE(t.update_job(row));
    EXPECT_EQ(t.job("job_1", "ann")->request, "request");
    for (const JobState end : {JobState::kDone, JobState::kFailed, JobState::kCancelled}) {
      JobRow ended = job_row("job_" + std::string(to_string(end)));
      t.insert_job(ended);
      ended.state = end;
      ended.answer = "answer";
      EXPECT_TRUE(t.update_job(ended));
      EXPECT_EQ(t.job(ended.id, "ann")->request, "");
      EXPECT_EQ(t.job(ended.id, "ann")->answer, "answer");
    }
  });
}

TEST_F(StorageRows, deleted_job_leaves_its_effects_and_its_callback_numbers_are_not_given_again) {
  write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    t.insert_job(job_row("job_1", "ses_1", 1));
    std::vector<EffectRow> effects{effect_row("job_1", 0, "[1]")};
    t.append_effects("ses_1", effects);
    CallbackRow asked;
    asked.session = "ses_1";
    asked.job = "job_1";
    EXPECT_EQ(t.insert_callback(asked).number, 1);
    EXPECT_TRUE(t.delete_job("job_1", "ann"));
    EXPECT_FALSE(t.delete_job("job_1", "ann"));
    EXPECT_FALSE(t.job_state("job_1", "ann"));
    EXPECT_TRUE(t.open_callbacks("ses_1", 0, 10).empty());
    EXPECT_EQ(t.effects("ses_1", 0, 10).size(), 1U);
    EXPECT_TRUE(t.has_effects_of_job("ses_1", "job_1"));
    EXPECT_FALSE(t.has_effects_of_job("ses_1", "job_2"));
    asked.job = "job_2";
    EXPECT_EQ(t.insert_callback(asked).number, 2);
  });
}

TEST_F(StorageRows, job_in_an_unknown_session_is_refused) {
  EXPECT_EQ(error_word([&] { write([](Transaction& t) { t.insert_job(job_row("job_1", "ses_9", 1)); }); }),
            "storage_failed");
}

TEST_F(StorageRows, queued_jobs_come_in_session_order) {
  write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    t.insert_session(session_row("ses_2"));
    t.insert_job(job_row("job_9", "ses_1", 1));
    t.insert_job(job_row("job_1", "ses_1", 10));
    t.insert_job(job_row("job_2", "ses_1", 2));
    t.insert_job(job_row("job_3", "ses_2", 1));
    t.insert_job(job_row("job_4"));
    JobRow done = job_row("job_5");
    done.state = JobState::kDone;
    t.insert_job(done);
  });
  std::vector<std::string> ids;
  PageRequest page{.limit = 2, .cursor = {}};
  do {
    const auto got = read([&](Reader& r) { return r.queued_jobs(page); });
    for (const JobRow& job : got.items) ids.push_back(job.id);
    page.cursor = got.next;
  } while (!page.cursor.empty());
  EXPECT_EQ(ids, (std::vector<std::string>{"job_4", "job_9", "job_2", "job_1", "job_3"}));
}

TEST_F(StorageRows, jobs_of_a_session_are_filtered_and_paged_newest_first) {
  write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    for (int i = 1; i <= 12; ++i) {
      JobRow job = job_row("job_" + std::to_string(100 - i), "ses_1", i);
      job.state = i % 2 == 0 ? JobState::kDone : JobState::kQueued;
      t.insert_job(job);
    }
  });
  const JobFilter done{.session = "ses_1", .state = JobState::kDone};
  const auto first = read([&](Reader& r) { return r.jobs("ann", done, {.limit = 4, .cursor = {}}); });
  ASSERT_EQ(first.items.size(), 4U);
  EXPECT_EQ(first.items[0].number, 12);
  EXPECT_EQ(first.items[3].number, 6);
  EXPECT_EQ(first.items[0].request, "");
  const auto second = read([&](Reader& r) { return r.jobs("ann", done, {.limit = 4, .cursor = first.next}); });
  ASSERT_EQ(second.items.size(), 2U);
  EXPECT_EQ(second.items[1].number, 2);
  EXPECT_EQ(second.next, "");
  EXPECT_TRUE(read([&](Reader& r) { return r.jobs("bob", done, {}); }).items.empty());
}

TEST_F(StorageRows, lists_of_jobs_are_filtered_and_paged_newest_first) {
  write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    for (int i = 0; i < 12; ++i) {
      JobRow job = job_row("job_" + std::to_string(90 - i), i % 3 == 0 ? "ses_1" : "", i / 3 + 1);
      job.state = i % 2 == 0 ? JobState::kDone : JobState::kFailed;
      job.program = i < 6 ? "prog_1" : "";
      job.created = at(i / 2);  // two at each time
      t.insert_job(job);
    }
  });
  const auto ids = [&](const JobFilter& filter) {
    std::string out;
    PageRequest page{.limit = 2, .cursor = {}};
    do {
      const auto got = read([&](Reader& r) { return r.jobs("ann", filter, page); });
      for (const JobRow& row : got.items) out += row.id.substr(4) + " ";
      page.cursor = got.next;
    } while (!page.cursor.empty());
    return out;
  };
  EXPECT_EQ(ids({}), "80 79 82 81 84 83 86 85 88 87 90 89 ");
  EXPECT_EQ(ids({.session = {}, .state = JobState::kFailed}), "79 81 83 85 87 89 ");
  EXPECT_EQ(ids({.session = {}, .state = JobState::kRunning}), "");
  EXPECT_EQ(ids({.session = {}, .state = {}, .program = "prog_1"}), "86 85 88 87 90 89 ");
  EXPECT_EQ(ids({.session = {}, .state = JobState::kDone, .program = "prog_1"}), "86 88 90 ");
  EXPECT_EQ(ids({.session = "ses_1", .state = {}, .program = {}}), "81 84 87 90 ");
  EXPECT_EQ(ids({.session = "ses_1", .state = {}, .program = "prog_1"}), "87 90 ");
  EXPECT_EQ(ids({.session = "ses_1", .state = JobState::kDone, .program = "prog_1"}), "90 ");
}

TEST_F(StorageRows, end_of_a_job_is_marked_behind_its_effects) {
  write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    t.mark_end("ses_1", "job_1", JobState::kFailed, "crashed");
    t.mark_end("", "job_1", JobState::kFailed, "crashed");
    EXPECT_EQ(t.session("ses_1")->last_sequence, 0) << "a job that left nothing";
    std::vector<EffectRow> rows = {effect_row("job_1", 0, "[1]"), effect_row("job_2", 0, "[2]")};
    t.append_effects("ses_1", rows);
    t.mark_end("ses_1", "job_1", JobState::kFailed, "crashed");
    EXPECT_TRUE(t.has_effects_of_job("ses_1", "job_1"));
    EXPECT_FALSE(t.has_effects_of_job("ses_1", "job_1", 1)) << "the mark is none";
  });
  const auto log = read([](Reader& r) { return r.effects("ses_1", 0, 10); });
  ASSERT_EQ(log.size(), 3U);
  EXPECT_EQ(log[2].job + " " + log[2].kind + " " + log[2].name, "job_1 failed crashed");
  EXPECT_EQ(log[2].step, -1);
  EXPECT_TRUE(log[2].values.empty());
}

TEST_F(StorageRows, list_limit_and_cursor_are_checked) {
  EXPECT_EQ(error_word([&] { read([](Reader& r) { return r.arrays("ann", {}, {.limit = 0, .cursor = {}}); }); }),
            "invalid_query");
  EXPECT_EQ(error_word([&] { read([](Reader& r) { return r.meshes("ann", {.limit = 1001, .cursor = {}}); }); }),
            "invalid_query");
  const JobFilter filter{.session = "ses_1", .state = {}};
  EXPECT_EQ(error_word([&] { read([&](Reader& r) { return r.jobs("ann", filter, {.limit = 1, .cursor = "x"}); }); }),
            "invalid_query");
}

TEST_F(StorageRows, arrays_paged_one_by_one_are_all_seen_once) {
  write([](Transaction& t) {
    for (int i = 0; i < 5; ++i) t.insert_array(array_row("arr_" + std::to_string(i)));
    ArrayRow named = array_row("arr_9");
    named.name = "bias";
    t.insert_array(named);
  });
  std::string seen;
  PageRequest page{.limit = 1, .cursor = {}};
  do {
    const auto got = read([&](Reader& r) { return r.arrays("ann", {}, page); });
    for (const ArrayRow& row : got.items) seen += row.id.back();
    page.cursor = got.next;
  } while (!page.cursor.empty());
  EXPECT_EQ(seen, "012349");
  const ArrayFilter filter{.session = {}, .name = "bias"};
  EXPECT_EQ(read([&](Reader& r) { return r.arrays("ann", filter, {}); }).items.size(), 1U);
}

TEST_F(StorageRows, effects_are_numbered_densely_and_a_rerun_adds_nothing) {
  write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    std::vector<EffectRow> first = {effect_row("job_1", 0, "[1]"), effect_row("job_1", -1, "[2]")};
    t.append_effects("ses_1", first);
    EXPECT_EQ(first[0].sequence, 1);
    EXPECT_EQ(first[1].sequence, 2);
    std::vector<EffectRow> rerun = {effect_row("job_1", 0, "[1]"), effect_row("job_1", 1, "[3]")};
    t.append_effects("ses_1", rerun);
    EXPECT_EQ(rerun[0].sequence, 1);
    EXPECT_EQ(rerun[1].sequence, 3);
    EXPECT_EQ(t.session("ses_1")->last_sequence, 3);
  });
  const auto log = read([](Reader& r) { return r.effects("ses_1", 1, 10); });
  ASSERT_EQ(log.size(), 2U);
  EXPECT_EQ(log[0].step, -1);
  EXPECT_EQ(log[1].values, "[3]");
}

TEST_F(StorageRows, lists_end_before_a_row_that_is_not_admitted) {
  write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    t.insert_session(session_row("ses_2"));
    t.insert_session(session_row("ses_3"));
    std::vector<EffectRow> rows(3, effect_row("job_1", -1, std::string(1'000, 'x')));
    t.append_effects("ses_1", rows);
  });
  std::vector<int64_t> asked;
  const auto first = [&](int64_t bytes) {
    asked.push_back(bytes);
    return false;
  };
  EXPECT_EQ(read([&](Reader& r) { return r.effects("ses_1", 0, 10, first); }).size(), 1U)
      << "the first row in any case";
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_GE(asked.front(), 1'000);
  EXPECT_LE(asked.front(), 1'100);
  EXPECT_EQ(read([&](Reader& r) {
              return r.effects("ses_1", 0, 10, [sum = 0](int64_t bytes) mutable { return (sum += bytes) < 2'200; });
            }).size(),
            2U);
  const auto page = read([&](Reader& r) { return r.sessions("ann", {10, "", first}); });
  ASSERT_EQ(page.items.size(), 1U);
  EXPECT_EQ(page.next, "ses_1");
}

TEST_F(StorageRows, effects_of_a_rerun_that_differ_are_refused) {
  write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    std::vector<EffectRow> first = {effect_row("job_1", 0, "[1]")};
    t.append_effects("ses_1", first);
  });
  EXPECT_EQ(error_word([&] {
              write([](Transaction& t) {
                std::vector<EffectRow> rerun = {effect_row("job_1", 1, "[9]"), effect_row("job_1", 0, "[2]")};
                t.append_effects("ses_1", rerun);
              });
            }),
            "nondeterministic_job");
  EXPECT_EQ(read([](Reader& r) { return r.effects("ses_1", 0, 10); }).size(), 1U);
}

TEST_F(StorageRows, callback_is_asked_once_and_answered_once) {
  write([](Transaction& t) {
    t.insert_session(session_row("ses_1"));
    CallbackRow row;
    row.session = "ses_1";
    row.job = "job_1";
    row.request = "{\"q\":1}";
    EXPECT_EQ(t.insert_callback(row).number, 1);
    row.call = 1;
    EXPECT_EQ(t.insert_callback(row).number, 2);
    t.reply_to_callback("ses_1", 2, "yes");
    t.reply_to_callback("ses_1", 2, "yes");
    EXPECT_EQ(error_word([&] { t.reply_to_callback("ses_1", 2, "no"); }), "conflict");
    EXPECT_EQ(error_word([&] { t.reply_to_callback("ses_1", 3, "no"); }), "not_found");
    EXPECT_EQ(t.insert_callback(row).answer, "yes");
    EXPECT_EQ(t.open_callbacks("ses_1", 0, 10).size(), 1U);
    EXPECT_EQ(t.callbacks_of_job("job_1").size(), 2U);
    row.request = "{\"q\":2}";
    EXPECT_EQ(error_word([&] { t.insert_callback(row); }), "nondeterministic_job");
  });
}

TEST_F(StorageRows, idempotency_key_is_taken_once_for_each_principal_and_route) {
  const IdempotencyRow row{"ann", "run", "k", "f", "job_1", at(5)};
  write([&](Transaction& t) {
    t.insert_job(job_row("job_1"));
    EXPECT_TRUE(t.insert_idempotency(row));
    EXPECT_FALSE(t.insert_idempotency(row));
    IdempotencyRow other = row;
    other.principal = "bob";
    EXPECT_TRUE(t.insert_idempotency(other));
  });
  const auto found = read([](Reader& r) { return r.idempotency("ann", "run", "k"); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->fingerprint, "f");
  EXPECT_EQ(found->made, "job_1");
  EXPECT_EQ(found->created, row.created);
}

TEST_F(StorageRows, idempotency_keys_expire_when_they_are_old_and_their_jobs_are_over) {
  write([](Transaction& t) {
    t.insert_job(job_row("job_1"));
    t.insert_idempotency({"ann", "run", "k", "f", "job_1", at(5)});
    t.insert_idempotency({"ann", "run", "of no job", "f", "job_2", at(5)});
    EXPECT_EQ(t.expire_idempotency(at(5), 10), 0);
    EXPECT_EQ(t.expire_idempotency(at(6), 10), 1);
    EXPECT_TRUE(t.idempotency("ann", "run", "k"));
    JobRow done = *t.job("job_1", "ann");
    done.state = JobState::kDone;
    EXPECT_TRUE(t.update_job(done));
    EXPECT_EQ(t.expire_idempotency(at(6), 10), 1);
    EXPECT_FALSE(t.idempotency("ann", "run", "k"));
  });
}

TEST_F(StorageRows, a_model_keeps_the_content_of_its_program) {
  const auto has_content = [&] { return read([](Reader& r) { return r.program_content("prog_1").has_value(); }); };
  write([](Transaction& t) {
    ProgramRow program{"prog_1", "ann", "stablehlo", "text", "", at(1)};
    t.put_program(program);
    t.insert_model({"ann", "m", 1, "prog_1", "{\"a\":1}", true, at(2)});
    EXPECT_EQ(error_word([&] { t.insert_model({"ann", "m", 1, "prog_1", "{}", true, at(2)}); }), "conflict");
    t.insert_model({"ann", "m", 3, "prog_1", "{}", true, at(3)});
    t.set_model_loaded("ann", "m", 3, false);
    t.delete_program("prog_1", "ann");
  });
  EXPECT_TRUE(has_content());
  EXPECT_EQ(read([](Reader& r) { return r.last_model_version("ann", "m"); }), 3);
  const auto rows = read([](Reader& r) { return r.models(); });
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].document, "{\"a\":1}");
  EXPECT_TRUE(rows[0].is_loaded);
  EXPECT_FALSE(rows[1].is_loaded);
  write([](Transaction& t) {
    t.give_to("ann", "bob");
    EXPECT_FALSE(t.delete_model("ann", "m", 1));
    EXPECT_TRUE(t.delete_model("bob", "m", 1));
    EXPECT_TRUE(t.delete_model("bob", "m", 3));
  });
  EXPECT_FALSE(has_content());
}

TEST_F(StorageRows, update_of_a_missing_row_is_not_found) {
  write([](Transaction& t) {
    EXPECT_EQ(error_word([&] { t.update_array(array_row("arr_1")); }), "not_found");
    EXPECT_EQ(error_word([&] { t.close_session("ses_1", at(1)); }), "not_found");
    EXPECT_EQ(error_word([&] { t.set_session_document("ses_1", "{}"); }), "not_found");
    EXPECT_EQ(error_word([&] { t.resume_session("ses_1"); }), "not_found");
    EXPECT_FALSE(t.halt_session("ses_1", 1));
    EXPECT_EQ(error_word([&] { static_cast<void>(t.update_job(job_row("job_1"))); }), "not_found");
  });
}

}  // namespace
}  // namespace meshd::testing
