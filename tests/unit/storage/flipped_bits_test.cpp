// Bits of the database that change on their own: the folder is refused, fsck finds it, or all is read as it was, but
// for values in rows, which have no checksum (docs/durability.md). Bytes of arrays are right or refused in each case,
// and nothing ends the process.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>

#include "storage/maintenance.h"
#include "tests/support/effort.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using namespace storage;

constexpr std::string_view kBytes = "abcdefgh";

// Rows of each table.
void fill(Store& store) {
  const CommittedBlob shard = put_blob(store.blobs(), "arr_1.v1.s0", kBytes);
  const CommittedBlob part = put_blob(store.blobs(), "upl_1.p0", kBytes);
  store.catalog().write([&](Transaction& t) {
    t.put_mesh({"mesh_1", "ann", "{\"m\": 1}", at(1)});
    t.put_program({"prog_1", "ann", "stablehlo", std::string(3000, 'p'), "{}", at(1), "net", "mine"});
    ArrayRow array = array_row("arr_1");
    array.mesh = "mesh_1";
    array.name = "w";
    array.holds_name = true;
    array.attributes = "{\"a\": 1}";
    t.insert_array(array);
    t.put_shard({"arr_1", 0, shard.ref});
    t.put_zarr_group("ann", {"run", "{}"}, 10);
    t.insert_upload({"upl_1", "ann", "{}", 16, false, {}, at(3)});
    t.insert_upload_part({"upl_1", 0, part.ref});
    for (const char* id : {"ses_1", "ses_gone"}) t.insert_session(session_row(id));
    for (int i = 0; i < 40; ++i) {
      JobRow job = job_row("job_" + std::to_string(i), "ses_1", t.next_job_number("ses_1"));
      job.program = "prog_1";
      job.environment = t.environment_id("meshd; a processor");
      t.insert_job(job);
      std::vector<EffectRow> effects = {effect_row(job.id, 0, "[0]"), effect_row(job.id, 1, "[1]")};
      effects[1].is_queued = true;
      t.append_effects("ses_1", effects);
      if (i % 2 == 0) continue;
      job.state = JobState::kDone;
      job.answer = std::string(500, 'a');
      job.finished = at(9);
      EXPECT_TRUE(t.update_job(job));
    }
    InfeedRow infeed{.session = "ses_1", .queue = "in", .content = "content", .created = at(4)};
    t.append_infeed(infeed);
    t.insert_callback(
        {.session = "ses_1", .job = "job_0", .call = 0, .request = "why", .answer = {}, .created = at(4)});
    t.insert_model({.principal = "ann", .name = "m", .program = "prog_1", .document = "{}", .created = at(4)});
    WebhookRow webhook;
    webhook.id = "whk_1";
    webhook.principal = "ann";
    webhook.session = "ses_1";
    webhook.url = "https://example.org";
    t.insert_webhook(webhook);
    t.insert_idempotency({"ann", "run", "key", "print", "job_1", at(5)});
    t.set_aged_until(at(5));
    t.set_machine_rates({"here", 7, 9});
    std::vector<EffectRow> many;
    for (int64_t i = 0; i < 1500; ++i) many.push_back(effect_row("job_x", i, "[2]"));
    t.append_effects("ses_gone", many);
    t.delete_session("ses_gone");  // of which rows are left
  });
}

std::vector<std::string> empty_tables(const std::string& database) {
  std::vector<std::string> out;
  sqlite3* handle = nullptr;
  EXPECT_EQ(sqlite3_open(database.c_str(), &handle), SQLITE_OK);
  const auto rows = [&](const std::string& sql) {
    std::vector<std::string> found;
    sqlite3_exec(
        handle, sql.c_str(),
        [](void* to, int, char** columns, char**) {
          static_cast<std::vector<std::string>*>(to)->emplace_back(columns[0]);
          return 0;
        },
        &found, nullptr);
    return found;
  };
  for (const std::string& table :
       rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"))
    if (rows("SELECT 1 FROM " + table + " LIMIT 1").empty()) out.push_back(table);
  sqlite3_close(handle);
  return out;
}

/// All that a client may see, in one text; bytes of arrays are compared here.
std::string read_all(Store& store) {
  std::string out;
  const auto add = [&](const auto&... parts) { ((out += parts, out += '|'), ...); };
  store.catalog().read([&](Reader& r) {
    for (const MeshRow& row : r.meshes("ann", {}).items)
      add(row.id, row.document, r.mesh(row.id, "ann").value_or(row).document);
    for (const ProgramRow& row : r.programs("ann", {}).items) {
      const auto program = r.program(row.id, "ann");
      add(row.id, row.name, row.doc, program ? program->text : "", r.program_content(row.id).value_or(row).document);
    }
    for (const ArrayRow& row : r.arrays("ann", {}, {}).items) {
      add(row.id, row.name, row.dtype, row.mesh, row.attributes, std::string(to_string(row.state)));
      for (const ShardRow& shard : r.shards(row.id)) EXPECT_EQ(read_blob(store.blobs(), shard.blob), kBytes);
    }
    for (const ZarrGroupRow& row : r.zarr_groups("ann", "", 10)) add(row.path, row.attributes);
    for (const UploadRow& row : r.uploads()) {
      add(row.id, row.request, row.result);
      for (const UploadPartRow& part : r.upload_parts(row.id)) EXPECT_EQ(read_blob(store.blobs(), part.blob), kBytes);
    }
    for (const SessionRow& row : r.sessions("ann", {}).items) {
      add(row.id, row.document, std::to_string(row.next_job_number), std::to_string(row.last_sequence));
      for (const EffectRow& effect : r.effects(row.id, 0, 1000))
        add(effect.job, effect.kind, effect.name, effect.values);
      for (const EffectRow& effect : r.outgoing(row.id, "loss", 0, 1000)) add(effect.job, effect.values);
      for (const InfeedQueueRow& queue : r.infeed_queues(row.id)) {
        add(queue.queue, std::to_string(queue.last));
        for (const InfeedRow& entry : r.infeeds(row.id, queue.queue, 0, 10)) add(entry.content);
      }
      for (const CallbackRow& callback : r.open_callbacks(row.id, 0, 10)) add(callback.job, callback.request);
    }
    for (const JobRow& row : r.jobs("ann", {}, {}).items) {
      const auto job = r.job(row.id, "ann");
      add(row.id, row.session, std::to_string(row.number), std::string(to_string(row.state)),
          job ? job->answer + job->request : "", r.environment(row.environment.value_or(0)));
    }
    for (const ModelRow& row : r.models()) add(row.name, row.program, row.document);
    for (const WebhookRow& row : r.webhooks_after("", 10)) add(row.id, row.url, row.session);
    if (const auto key = r.idempotency("ann", "run", "key")) add(key->made, key->fingerprint);
    if (const auto rates = r.machine_rates()) add(rates->machine, std::to_string(rates->bytes));
  });
  return out;
}

struct Outcomes {
  int refused = 0;  ///< by the start, or by a read
  int found = 0;    ///< by fsck
  int same = 0;
  int other_values = 0;  ///< nobody can tell
};

class FlippedBits : public ::testing::Test {
 protected:
  void SetUp() override {
    {
      OpenStore store(folder_.path());
      fill(*store);
      all_ = read_all(*store);
    }
    EXPECT_EQ(empty_tables(database()), std::vector<std::string>{}) << "a table has no row";
    size_ = static_cast<int64_t>(std::filesystem::file_size(database()));
  }
  [[nodiscard]] std::string database() const { return database_path(folder_.path()); }

  void flip(const std::string& file, int64_t bit) const {
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekg(bit / 8);
    const int byte = bytes.get();
    bytes.seekp(bit / 8);
    bytes.put(static_cast<char>(byte ^ 1 << bit % 8));
  }

  void judge(int64_t bit, Outcomes& outcomes) {
    const TempFolder damaged(TempFolder::Where::kMemory);
    std::filesystem::copy(folder_.path(), damaged.path(), std::filesystem::copy_options::recursive);
    flip(database_path(damaged.path()), bit);
    bool is_found = false;
    try {
      is_found = check(*files_, damaged.path()).problem_count > 0;
    } catch (const core::Error&) {
      is_found = true;
    }
    try {
      OpenStore store(damaged.path());
      const std::string now = read_all(*store);
      ++(is_found ? outcomes.found : now == all_ ? outcomes.same : outcomes.other_values);
    } catch (const core::Error&) {
      ++outcomes.refused;
    }
  }

  TempFolder folder_{TempFolder::Where::kMemory};
  std::unique_ptr<FileSystem> files_ = real_file_system();
  std::string all_;
  int64_t size_ = 0;
};

TEST_F(FlippedBits, of_the_database_end_nothing_and_never_change_bytes_of_arrays) {
  std::mt19937_64 random(by_effort(1, 2, 3));
  Outcomes outcomes;
  const int rounds = by_effort(200, 200, 5000);
  for (int i = 0; i < rounds; ++i) {
    const auto bit = static_cast<int64_t>(random() % static_cast<uint64_t>(8 * size_));
    judge(bit, outcomes);
    ASSERT_FALSE(HasFailure()) << "bit " << bit;
  }
  EXPECT_EQ(outcomes.refused + outcomes.found + outcomes.same + outcomes.other_values, rounds);
  EXPECT_GT(outcomes.refused + outcomes.found, 0) << "no damage was noticed";
  std::cout << outcomes.refused << " refused, " << outcomes.found << " found by fsck, " << outcomes.same
            << " harmless, " << outcomes.other_values << " another value\n";
}

}  // namespace
}  // namespace meshd::testing
