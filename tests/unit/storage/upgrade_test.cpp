// Data folders of every earlier schema: a row of each kind in the columns of that time, and what a start makes of it.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "service/core/ids.h"
#include "tests/support/old_database.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using namespace storage;

class EverySchema : public ::testing::TestWithParam<size_t> {
 protected:
  static size_t version() { return GetParam(); }
  /// The one column where the other did not exist yet.
  static std::string since(size_t first, const std::string& then, const std::string& before) {
    return version() >= first ? then : before;
  }

  void SetUp() override {
    CommittedBlob blob;
    {
      OpenStore store(folder_.path());
      blob = put_blob(store->blobs(), "arr_1.v1.s0", "abcdef");
      store->catalog().write([&](Transaction& t) {
        t.insert_array(array_row("arr_1"));  // else the next start removes its file
        t.put_shard({"arr_1", 0, blob.ref});
      });
    }
    for (const char* file : {"/meshd.db", "/meshd.db-wal", "/meshd.db-shm"})
      std::filesystem::remove(folder_.path() + file);
    make_database(folder_.path() + "/meshd.db", version(), rows(blob.ref));
  }

  static std::string rows(const BlobRef& blob) {
    const std::string us = "' || char(31) || '";  // what separated the parts of a program's document
    const std::string trees = "[1]" + us + "[2]";
    std::string sql =
        "INSERT INTO meta VALUES('clean', '1');"
        "INSERT INTO mesh_contents VALUES('mesh_1', '{\"m\": 1}'); INSERT INTO meshes VALUES('ann', 'mesh_1', 4);"
        "INSERT INTO program_contents VALUES('prog_1', 'stablehlo', '" +
        since(4, trees, "net" + us + "mine" + us + trees) +
        "', 'text'); INSERT INTO programs VALUES('ann', 'prog_1', 5" + since(4, ", 'net', 'mine'", "") +
        ");"
        "INSERT INTO sessions VALUES('ses_1', 'ann', 'mine', 'open', 'continue', 1, NULL, 4, 2, '{}'" +
        since(8, ", 1", "") + since(10, ", NULL", "") + since(15, ", 'streaming'", "") + ");";
    // Id, session, number, state, start and end.
    const auto job = [&](const std::string& id, const std::string& session, const std::string& number,
                         const std::string& state, const std::string& times) {
      sql +=
          "INSERT INTO jobs(id, session, principal, program, number, state, attempt, error_code, error_detail, "
          "created, started, finished, deadline, request, answer) VALUES('" +
          id + "', " + session + ", 'ann', NULL, " + number + ", '" + state + "', 1, '', '', 2, " + times +
          ", NULL, x'63', x'62');";
    };
    job("job_done", "'ses_1'", "1", "done", "3, 8");
    job("job_waits", "'ses_1'", "2", "queued", "NULL, NULL");
    job("job_runs", "'ses_1'", "3", "running", "3, NULL");
    job("job_alone", "NULL", "0", "failed", "3, 9");
    const auto array = [&](const std::string& id, const std::string& durability, const std::string& reserved_by) {
      sql +=
          "INSERT INTO arrays(id, principal, session, name, dtype, shape, mesh, sharding, durability, state, "
          "version, bytes, committed, reserved_by, reason, created" +
          since(7, "", ", document") + ") VALUES('" + id + "', 'ann', '', 'w', 'float32', '2,3', 'mesh_1', '', '" +
          durability + "', 'ready', 1, 24, 0, " + reserved_by + ", '', 3" + since(7, "", ", ''") + ");";
    };
    array("arr_1", "durable", "'job_waits'");
    array("arr_2", "memory", "NULL");
    sql += "INSERT INTO shards(array, shard_index, blob, length, checksum" + since(7, "", ", process, devices") +
           ") VALUES('arr_1', 0, '" + blob.name + "', " + std::to_string(blob.length) + ", " +
           std::to_string(static_cast<int64_t>(blob.checksum)) + since(7, "", ", 0, '0'") + ");";
    for (const char* number : {"1", "2"}) {
      sql += std::string(
                 "INSERT INTO effects(session, sequence, job, step, kind, name, ordered, shard_index, data) "
                 "VALUES('ses_1', ") +
             number + ", 'job_done', " + number + ", 'log', 'loss', 1, 0, x'6" + number + "');";
    }
    sql += "INSERT INTO idempotency(principal, route, key, fingerprint, created, " + since(11, "made", "job") +
           since(7, "", ", state, status, headers, body") + ") VALUES('ann', 'run', 'k', 'print', 5, 'job_done'" +
           since(7, "", ", 'done', 200, '', x''") + ");";
    if (version() >= 2) {
      sql += "INSERT INTO " + since(7, "infeed_entries", "feeds") + " VALUES('ses_1', 'in', 7, 3, x'64');" +
             "INSERT INTO " + since(7, "infeed_queues", "feed_queues") + " VALUES('ses_1', 'in', 7);";
    }
    if (version() >= 3) sql += "INSERT INTO callbacks VALUES('ses_1', 1, 'job_waits', 0, x'65', x'66', 6);";
    if (version() >= 9) sql += "INSERT INTO deleted_sessions VALUES('ses_gone');";
    if (version() >= 13) sql += "UPDATE arrays SET holds_name = 1 WHERE id = 'arr_1';";
    if (version() >= 14) sql += "INSERT INTO uploads VALUES('upl_1', 'ann', '{}', 7, 'open', '', 3);";
    if (version() >= 16) {
      sql +=
          "INSERT INTO environments VALUES(7, 'meshd 1; a processor'); UPDATE jobs SET environment = 7, "
          "request_version = "
          "1 WHERE id = 'job_waits'; UPDATE jobs SET blob = '" +
          blob.name + "', blob_length = 6, blob_checksum = " + std::to_string(static_cast<int64_t>(blob.checksum)) +
          " WHERE id = 'job_waits';";
    }
    if (version() >= 17) sql += "INSERT INTO models VALUES('ann', 'm', 2, 'prog_1', '{}', 0, 4);";
    if (version() >= 18) {
      sql +=
          "INSERT INTO webhooks VALUES('whk_1', 'ann', 'ses_1', 'https://example.org', 'c2VjcmV0', 1, 0, 'active', 1, "
          "2, 0, 3, 5, 'late', 4);";
    }
    if (version() >= 19) {
      sql += "UPDATE arrays SET attributes = '{\"a\": 1}' WHERE id = 'arr_1';";
      sql += "INSERT INTO zarr_groups VALUES('ann', 'run7', '{\"b\": 2}');";
    }
    return sql;
  }

  TempFolder folder_{TempFolder::Where::kMemory};
};

TEST_P(EverySchema, is_upgraded_with_all_that_it_has) {
  for (const bool again : {false, true}) {  // the second start finds what the first has made
    OpenStore store(folder_.path());
    EXPECT_EQ(store->recovery().requeued_jobs, again ? 0 : 1);
    store->catalog().read([&](Reader& r) {
      EXPECT_EQ(r.mesh("mesh_1", "ann")->document, "{\"m\": 1}");
      const auto program = r.program("prog_1", "ann");
      EXPECT_EQ(program->name + " " + program->doc + " " + program->text, "net mine text");
      EXPECT_EQ(program->document, std::string("[1]") + char(31) + "[2]");
      EXPECT_EQ(r.session("ses_1", "ann")->name, "mine");
      EXPECT_EQ(r.session("ses_1")->on_error, OnError::kContinue);
      EXPECT_EQ(r.session("ses_1")->halted_by, std::nullopt);
      EXPECT_EQ(r.session("ses_1")->effects, version() >= 15 ? EffectMode::kStreaming : EffectMode::kAtomic);

      const auto states = [&] {
        std::string out;
        for (const JobRow& job : r.jobs("ann", {}, {}).items)
          out += job.id + " " + std::string(to_string(job.state)) + ", ";
        return out;
      };
      EXPECT_EQ(states(), "job_waits queued, job_runs queued, job_done done, job_alone failed, ");
      EXPECT_EQ(r.job("job_done", "ann")->answer, "b");
      EXPECT_EQ(r.job("job_waits", "ann")->request, "c") << "it has still to run";
      EXPECT_EQ(r.job("job_waits", "ann")->request_version, version() >= 16 ? 1 : 0) << "0: a body of the API";
      EXPECT_EQ(r.job("job_waits", "ann")->bytes.has_value(), version() >= 16);
      EXPECT_EQ(r.environment(r.job("job_waits", "ann")->environment.value_or(0)),
                version() >= 16 ? "meshd 1; a processor" : "");
      EXPECT_EQ(r.job("job_runs", "ann")->attempt, 2);
      EXPECT_EQ(r.queued_jobs({}).items.size(), 2U);
      EXPECT_EQ(r.finished_job("ann", 0)->id, "job_alone");
      EXPECT_TRUE(r.job("job_waits", "ann")->result_arrays.empty());
      EXPECT_FALSE(r.is_cancel_requested("job_waits", "ann"));

      EXPECT_EQ(r.array("arr_1", "ann")->reserved_by, "job_waits");
      EXPECT_EQ(r.array("arr_1")->shape, (std::vector<int64_t>{2, 3}));
      EXPECT_EQ(r.array("arr_2")->state, ArrayState::kLost);
      EXPECT_EQ(r.array_by_name("w", "ann")->id, "arr_1");
      EXPECT_EQ(r.array("arr_1")->holds_name, version() >= 13);
      EXPECT_EQ(r.uploads().size(), version() >= 14 ? 1U : 0U);
      EXPECT_EQ(r.array("arr_1")->attributes, version() >= 19 ? "{\"a\": 1}" : "");
      EXPECT_EQ(r.zarr_groups("ann", "", 9).size(), version() >= 19 ? 1U : 0U);
      EXPECT_EQ(r.last_model_version("ann", "m"), version() >= 17 ? 2 : 0);
      EXPECT_EQ(r.webhook("whk_1").value_or(WebhookRow{}).pending, version() >= 18 ? 2 : 0);
      ASSERT_EQ(r.shards("arr_1").size(), 1U);
      EXPECT_EQ(read_blob(store->blobs(), r.shards("arr_1")[0].blob), "abcdef");

      const auto effects = r.effects("ses_1", 0, 10);
      ASSERT_EQ(effects.size(), 2U);
      EXPECT_EQ(effects[0].values + effects[1].values, "ab");
      EXPECT_EQ(r.idempotency("ann", "run", "k")->made, "job_done");
      EXPECT_EQ(r.infeeds("ses_1", "in", 0, 10).size(), version() >= 2 ? 1U : 0U);
      EXPECT_EQ(r.callbacks_of_job("job_waits").size(), version() >= 3 ? 1U : 0U);
    });
  }
}

TEST_P(EverySchema, goes_on_where_it_was) {
  OpenStore store(folder_.path());
  store->catalog().write([&](Transaction& t) {
    EXPECT_EQ(t.next_job_number("ses_1"), 4);
    t.insert_job(job_row("job_next", "ses_1", 4));
    std::vector<EffectRow> effects{effect_row("job_next", 0, "c")};
    t.append_effects("ses_1", effects);
    EXPECT_EQ(effects[0].sequence, 3);
    CallbackRow asked;
    asked.session = "ses_1";
    asked.job = "job_next";
    EXPECT_EQ(t.insert_callback(asked).number, version() >= 3 ? 2 : 1);
    InfeedRow entry{"ses_1", "in", 0, "e", at(9)};
    t.append_infeed(entry);
    EXPECT_EQ(entry.number, version() >= 2 ? 8 : 1);
    t.request_cancel("job_next", "ann");
    t.delete_job("job_alone", "ann");
    EXPECT_EQ(t.expire_idempotency(at(6), 10), 1);
  });
  EXPECT_EQ(store->catalog().read([](Reader& r) { return r.finished_job("ann", 0); })->id, "job_done");
}

INSTANTIATE_TEST_SUITE_P(Storage, EverySchema, ::testing::Range(size_t{1}, migrations().size() + 1),
                         [](const auto& schema) { return "version_" + std::to_string(schema.param); });

// Folders of these versions are out there: what has made them must not change, and a new one is added at the end.
TEST(Migrations, are_what_made_the_folders_of_their_time) {
  const std::vector<std::string> digests = {
      "549c7c7aebb26efd", "9da8cf49094751d0", "1853739768fbe1ed", "49957769cd8e3697", "41ea3bf8e047f441",
      "e05ce8acf1ace132", "67633f5732347cc1", "1d4da72cc6817931", "51b84fed5013b58d", "c15f8b2c70dda7bc",
      "5cbc0fc58b6703de", "281170d3be735fdf", "eae9b5a67c45c16e", "125dabb279fcbd42", "2cf5c7ee2bc7b124",
      "07a1e5f61eb267df", "e5b8c70044fa4670", "57c22f4dbdc483d8", "89db740fa4c7d6e8", "88e9f744cc46dab2",
      "7d9b7cf636218bf8"};
  std::vector<std::string> found;
  for (const char* migration : migrations()) found.push_back(core::sha256_hex(migration).substr(0, 16));
  EXPECT_EQ(found, digests);
}

}  // namespace
}  // namespace meshd::testing
