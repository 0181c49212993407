// What a service does with rows and blobs besides committing a job's arrays (fault_test): each call into the system
// fails in turn, and each operation has happened whole or not at all, as its client was told, when the folder is opened
// again.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/support/effort.h"
#include "tests/support/fault_plan.h"
#include "tests/support/storage_fixture.h"
#include "tests/support/watched_file_system.h"
#include "tests/support/watched_vfs.h"

namespace meshd::testing {
namespace {

using namespace storage;

/// How much of an operation is to be seen.
enum class Seen { kNothing, kAll, kPart };

Seen all_or_nothing(std::initializer_list<bool> pieces) {
  const auto seen = static_cast<size_t>(std::count(pieces.begin(), pieces.end(), true));
  if (seen == 0) return Seen::kNothing;
  return seen == pieces.size() ? Seen::kAll : Seen::kPart;
}

/// One acknowledged request. No other operation of its scenario undoes it.
struct Operation {
  std::function<void(Store&)> run;
  std::function<Seen(Reader&)> seen;
};

struct Scenario {
  std::string name;
  std::function<void(Store&)> prepare;
  std::vector<Operation> operations;
};

void with_session(Store& store) {
  store.catalog().write([](Transaction& t) { t.insert_session(session_row("ses_1")); });
}

UploadRow upload_row(const std::string& id, bool is_done) {
  return {
      .id = id, .principal = "ann", .request = "{}", .length = 6, .is_done = is_done, .result = {}, .touched = at(3)};
}

bool has_upload(Reader& r, const std::string& id, bool is_done) {
  const auto uploads = r.uploads();
  return std::any_of(uploads.begin(), uploads.end(),
                     [&](const UploadRow& row) { return row.id == id && row.is_done == is_done; });
}

// A body in two parts; then the array that it makes, in whose transaction the parts go.
Scenario uploads() {
  const auto part = [](int64_t number) {
    return Operation{
        [number](Store& store) {
          const CommittedBlob blob = put_blob(store.blobs(), "upl_1.p" + std::to_string(number), "abc");
          store.catalog().write([&](Transaction& t) { t.insert_upload_part({"upl_2", 3 * number, blob.ref}); });
        },
        [number](Reader& r) {
          const auto parts = r.upload_parts("upl_2");
          return all_or_nothing({std::any_of(parts.begin(), parts.end(),
                                             [&](const UploadPartRow& row) { return row.offset == 3 * number; })});
        }};
  };
  const Operation finish{[](Store& store) {
                           const CommittedBlob blob = put_blob(store.blobs(), "arr_1.v1.s0", "abcdef");
                           store.catalog().write([&](Transaction& t) {
                             t.insert_array(array_row("arr_1"));
                             t.put_shard({"arr_1", 0, blob.ref});
                             t.drop_upload_parts("upl_1");
                             t.update_upload(upload_row("upl_1", true));
                           });
                         },
                         [](Reader& r) {
                           return all_or_nothing({r.array("arr_1").has_value(), r.shards("arr_1").size() == 1,
                                                  r.upload_parts("upl_1").empty(), has_upload(r, "upl_1", true)});
                         }};
  return {"uploads",
          [](Store& store) {
            const CommittedBlob blob = put_blob(store.blobs(), "upl_1.p0", "abcdef");
            store.catalog().write([&](Transaction& t) {
              for (const char* id : {"upl_1", "upl_2"}) t.insert_upload(upload_row(id, false));
              t.insert_upload_part({"upl_1", 0, blob.ref});
            });
          },
          {finish, part(0), part(1)}};
}

// Accepting takes a number, a key and a donated array; the end takes the array and gives another.
Scenario jobs() {
  const Operation accept{
      [](Store& store) {
        store.catalog().write([](Transaction& t) {
          t.insert_job(job_row("job_2", "ses_1", t.next_job_number("ses_1")));
          t.reserve_array("arr_2", "job_2");
        });
      },
      [](Reader& r) {
        return all_or_nothing({r.job("job_2", "ann").has_value(), r.array("arr_2")->reserved_by == "job_2",
                               r.session("ses_1")->next_job_number == 3});
      }};
  const Operation finish{[](Store& store) {
                           const CommittedBlob blob = put_blob(store.blobs(), "arr_3.v1.s0", "abcdef");
                           store.catalog().write([&](Transaction& t) {
                             JobRow job = job_row("job_1", "ses_1", 1);
                             job.state = JobState::kDone;
                             job.answer = "answer";
                             job.finished = at(9);
                             t.consume_array("arr_1", "job_1");
                             t.insert_array(array_row("arr_3"));
                             t.put_shard({"arr_3", 0, blob.ref});
                             EXPECT_TRUE(t.update_job(job));
                           });
                         },
                         [](Reader& r) {
                           return all_or_nothing({r.job("job_1", "ann")->state == JobState::kDone,
                                                  r.array("arr_1")->state == ArrayState::kDonated,
                                                  r.array("arr_3").has_value(), r.shards("arr_3").size() == 1});
                         }};
  return {"jobs",
          [](Store& store) {
            with_session(store);
            const CommittedBlob one = put_blob(store.blobs(), "arr_1.v1.s0", "abcdef");
            const CommittedBlob other = put_blob(store.blobs(), "arr_2.v1.s0", "abcdef");
            store.catalog().write([&](Transaction& t) {
              t.insert_array(array_row("arr_1"));
              t.put_shard({"arr_1", 0, one.ref});
              t.insert_array(array_row("arr_2"));
              t.put_shard({"arr_2", 0, other.ref});
              t.insert_job(job_row("job_1", "ses_1", t.next_job_number("ses_1")));
              t.reserve_array("arr_1", "job_1");
            });
          },
          {accept, finish}};
}

// Batches of effects that are in a queue as well, a callback request, and its reply.
Scenario effects() {
  const auto batch = [](const std::string& job) {
    return Operation{
        [job](Store& store) {
          store.catalog().write([&](Transaction& t) {
            std::vector<EffectRow> rows = {effect_row(job, 0, "[0]"), effect_row(job, 1, "[1]")};
            for (EffectRow& row : rows) row.is_queued = true;
            t.append_effects("ses_1", rows);
          });
        },
        [job](Reader& r) {
          return all_or_nothing({r.has_effects_of_job("ses_1", job, 0), r.has_effects_of_job("ses_1", job, 1)});
        }};
  };
  const Operation ask{
      [](Store& store) {
        store.catalog().write([](Transaction& t) {
          t.insert_callback(
              {.session = "ses_1", .job = "job_2", .call = 0, .request = "why", .answer = {}, .created = at(4)});
        });
      },
      [](Reader& r) { return all_or_nothing({!r.callbacks_of_job("job_2").empty()}); }};
  const Operation reply{
      [](Store& store) { store.catalog().write([](Transaction& t) { t.reply_to_callback("ses_1", 1, "because"); }); },
      [](Reader& r) { return all_or_nothing({r.callbacks_of_job("job_1").at(0).answer == "because"}); }};
  return {"effects",
          [](Store& store) {
            with_session(store);
            store.catalog().write([](Transaction& t) {
              for (const char* job : {"job_1", "job_2"})
                t.insert_job(job_row(job, "ses_1", t.next_job_number("ses_1")));
              t.insert_callback(
                  {.session = "ses_1", .job = "job_1", .call = 0, .request = "why", .answer = {}, .created = at(4)});
            });
          },
          {batch("job_1"), batch("job_2"), ask, reply}};
}

// Jobs that are over and old keys leave.
Scenario retention() {
  const auto is_gone = [](const std::string& id) {
    return [id](Reader& r) { return all_or_nothing({!r.job(id, "ann").has_value()}); };
  };
  const auto removal = [](const std::string& id) {
    return [id](Store& store) { store.catalog().write([&](Transaction& t) { t.delete_job(id, "ann"); }); };
  };
  const Operation aged{
      [](Store& store) {
        store.catalog().write([](Transaction& t) {
          t.expire_idempotency(at(10), 100);
          t.set_aged_until(at(10));
        });
      },
      [](Reader& r) {
        return all_or_nothing({!r.idempotency("ann", "run", "old").has_value(), r.aged_until() == at(10)});
      }};
  return {"retention",
          [](Store& store) {
            store.catalog().write([](Transaction& t) {
              for (const char* id : {"job_1", "job_2"}) {
                JobRow job = job_row(id);
                t.insert_job(job);
                job.state = JobState::kDone;
                job.answer = std::string(20'000, 'a');
                job.finished = at(5);
                EXPECT_TRUE(t.update_job(job));
              }
              t.insert_idempotency({"ann", "run", "old", "print", "job_1", at(5)});
            });
          },
          {{removal("job_1"), is_gone("job_1")}, aged, {removal("job_2"), is_gone("job_2")}}};
}

// More rows than one transaction removes: the session is gone with the first, and what is left of it is not to be seen.
Scenario removed_sessions() {
  const Operation removal{
      [](Store& store) { store.catalog().write([](Transaction& t) { t.delete_session("ses_1"); }); },
      [](Reader& r) {
        return all_or_nothing(
            {!r.session("ses_1").has_value(), !r.webhook("whk_1").has_value(), !r.job("job_1", "ann").has_value()});
      }};
  // Rows that are left are removed by whoever comes next; that it failed is nothing that a client was told.
  const Operation rest{[](Store& store) {
                         while (store.catalog().read([](Reader& r) { return r.has_deleted_sessions(); }))
                           store.catalog().write([](Transaction& t) { t.remove_deleted_sessions(); });
                       },
                       [](Reader& r) { return all_or_nothing({!r.has_deleted_sessions()}); }};
  return {"removed_sessions",
          [](Store& store) {
            with_session(store);
            store.catalog().write([](Transaction& t) {
              t.insert_job(job_row("job_1", "ses_1", t.next_job_number("ses_1")));
              std::vector<EffectRow> rows;
              for (int64_t i = 0; i < 1100; ++i) rows.push_back(effect_row("job_1", i, "[3]"));
              t.append_effects("ses_1", rows);
              WebhookRow webhook;
              webhook.id = "whk_1";
              webhook.principal = "ann";
              webhook.session = "ses_1";
              t.insert_webhook(webhook);
            });
          },
          {removal, rest}};
}

// A key is stored with what it made, and makes it once.
Scenario idempotency() {
  const auto claim = [](const std::string& key) {
    return Operation{
        [key](Store& store) {
          // A client that got an error sends it again: the key says what has happened.
          const auto known = store.catalog().read([&](Reader& r) { return r.idempotency("ann", "run", key); });
          if (known) return;
          store.catalog().write([&](Transaction& t) {
            t.claim_key(IdempotencyRow{"ann", "run", key, "print", "job_" + key, at(5)});
            t.insert_job(job_row("job_" + key, "ses_1", t.next_job_number("ses_1")));
          });
        },
        [key](Reader& r) {
          return all_or_nothing({r.idempotency("ann", "run", key).has_value(), r.job("job_" + key, "ann").has_value()});
        }};
  };
  // Each is sent twice.
  return {"idempotency", with_session, {claim("a"), claim("a"), claim("b"), claim("b")}};
}

std::vector<Scenario> scenarios() {
  return {uploads(), jobs(), effects(), retention(), removed_sessions(), idempotency()};
}

/// What a client knows of an operation.
enum class Told { kDone, kMaybe };

std::vector<Told> run_all(Store& store, const Scenario& scenario) {
  std::vector<Told> told;
  for (const Operation& operation : scenario.operations) {
    const std::string word = error_word([&] {
      operation.run(store);
      (void)store.collect_garbage();
    });
    // An error behind the commit, of the collector, leaves an operation that has happened.
    told.push_back(word.empty() ? Told::kDone : Told::kMaybe);
  }
  return told;
}

class FaultScenarios : public ::testing::TestWithParam<std::tuple<size_t, FaultReach, FaultKind>> {
 protected:
  void check_after(const std::string& folder, const Scenario& scenario, const std::vector<Told>& told) {
    OpenStore store(folder);
    EXPECT_TRUE(store->recovery().damaged_arrays.empty());
    store->catalog().read([&](Reader& r) {
      for (size_t i = 0; i < told.size(); ++i) {
        const Seen seen = scenario.operations[i].seen(r);
        EXPECT_NE(seen, Seen::kPart) << "operation " << i << " has happened in part";
        EXPECT_TRUE(told[i] != Told::kDone || seen == Seen::kAll)
            << "operation " << i << " was acknowledged and is lost";
      }
      const auto log = r.effects("ses_1", 0, 1000);
      for (size_t i = 0; i < log.size(); ++i) EXPECT_EQ(log[i].sequence, static_cast<int64_t>(i) + 1);
    });
    EXPECT_EQ(store.fatal(), "");
  }
};

TEST_P(FaultScenarios, nth_call_failing_leaves_each_operation_whole_or_undone) {
  const auto [which, reach, kind] = GetParam();
  const Scenario scenario = scenarios()[which];
  FaultPlan plan;
  WatchedFileSystem files(plan);
  const WatchedVfs vfs(plan);
  const core::SystemClock clock;
  int64_t nth = 1;
  for (;; nth += by_effort(7, 1, 1)) {
    const TempFolder folder(TempFolder::Where::kMemory);
    { scenario.prepare(*OpenStore(folder.path())); }
    std::vector<Told> told;
    bool is_fatal = false;
    {
      Store store({folder.path(), vfs.name(), [&](const std::string&) { is_fatal = true; }, 4096}, files, clock);
      plan.arm(nth, reach, kind);
      told = run_all(store, scenario);
      if (!is_fatal && plan.fired()) {
        plan.disarm();
        EXPECT_EQ(
            error_word([&] { store.catalog().write([](Transaction& t) { t.insert_session(session_row("ses_9")); }); }),
            "")
            << "storage did not recover from call " << nth;
      }
    }
    const bool fired = plan.fired();
    plan.disarm();
    ASSERT_NO_FATAL_FAILURE(check_after(folder.path(), scenario, told)) << scenario.name << ", call " << nth;
    ASSERT_FALSE(HasFailure()) << scenario.name << ", call " << nth;
    if (!fired) {
      EXPECT_EQ(std::count(told.begin(), told.end(), Told::kDone), std::ssize(told)) << "without a fault all is done";
      break;
    }
  }
  EXPECT_GT(nth, 15);
}

INSTANTIATE_TEST_SUITE_P(All, FaultScenarios,
                         ::testing::Combine(::testing::Range<size_t>(0, scenarios().size()),
                                            ::testing::Values(FaultReach::kOnce, FaultReach::kSticky),
                                            ::testing::Values(FaultKind::kIo, FaultKind::kNoSpace)),
                         [](const auto& chosen) {
                           return scenarios()[std::get<0>(chosen.param)].name +
                                  (std::get<1>(chosen.param) == FaultReach::kOnce ? "_once" : "_sticky") +
                                  (std::get<2>(chosen.param) == FaultKind::kIo ? "_io" : "_no_space");
                         });

}  // namespace
}  // namespace meshd::testing
