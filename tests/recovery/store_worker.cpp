#include "tests/recovery/store_worker.h"

#include <utility>

#include "tests/recovery/kill_protocol.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {

using namespace storage;

namespace {

void insert(Transaction& t, const std::string& array, const std::vector<CommittedBlob>& blobs) {
  t.insert_array(array_row(array));
  for (size_t shard = 0; shard < blobs.size(); ++shard) {
    t.put_shard({array, static_cast<int64_t>(shard), blobs[shard].ref});
  }
}

}  // namespace

void open_kill_session(Store& store) {
  store.catalog().write([](Transaction& t) {
    if (!t.session(kKillSession)) t.insert_session(session_row(std::string(kKillSession)));
  });
}

StoreWorker::StoreWorker(Store& store, std::string name, std::function<void(const std::string&)> say)
    : store_(store), name_(std::move(name)), say_(std::move(say)), random_(name_hash(name_)) {}

void StoreWorker::step() {
  switch (random_() % 9) {
    case 0:
    case 1:
      create();
      break;
    case 2:
      donate();
      break;
    case 3:
      remove();
      break;
    case 4:
      accept_job();
      break;
    case 5:
      keep_answer();
      break;
    case 6:
      (void)store_.collect_garbage();
      break;
    case 7:
      stream();
      break;
    default:
      log();
      break;
  }
}

std::vector<CommittedBlob> StoreWorker::put_shards(const std::string& array) {
  std::vector<BlobWriter> writers;
  for (int64_t shard = 0; shard < shard_count_of(array); ++shard) {
    const std::string bytes = shard_payload(array, shard);
    writers.push_back(store_.blobs().begin(array + ".s" + std::to_string(shard), static_cast<int64_t>(bytes.size())));
    writers.back().write(0, as_bytes(bytes));
  }
  return commit_blobs(std::move(writers));
}

void StoreWorker::create() {
  const std::string array = next("arr_");
  const auto blobs = put_shards(array);
  store_.catalog().write([&](Transaction& t) { insert(t, array, blobs); });
  say_("a c " + array);
  mine_.push_back(array);
}

std::string StoreWorker::take_mine() {
  std::swap(mine_[random_() % mine_.size()], mine_.back());
  std::string array = std::move(mine_.back());
  mine_.pop_back();
  return array;
}

void StoreWorker::donate() {
  if (mine_.empty()) return;
  const std::string array = take_mine();
  const std::string output = next("arr_");
  say_("i x " + array + " " + output);
  const auto blobs = put_shards(output);
  store_.catalog().write([&](Transaction& t) {
    t.consume_array(array, "job");
    insert(t, output, blobs);
  });
  say_("a x " + array + " " + output);
  mine_.push_back(output);
}

void StoreWorker::remove() {
  if (mine_.empty()) return;
  const std::string array = take_mine();
  say_("i d " + array);
  store_.catalog().write([&](Transaction& t) { t.delete_array(array); });
  say_("a d " + array);
}

void StoreWorker::accept_job() {
  const std::string job = next("job_");
  int64_t number = 0;
  store_.catalog().write([&](Transaction& t) {
    number = t.next_job_number(kKillSession);
    t.insert_job(job_row(job, std::string(kKillSession), number));
  });
  say_("a j " + job + " " + std::to_string(number));
  store_.catalog().write([&](Transaction& t) {
    JobRow row = *t.job_of_session(kKillSession, job);
    row.state = random_() % 2 == 0 ? JobState::kRunning : JobState::kDone;
    static_cast<void>(t.update_job(row));
  });
}

// A job that commits its effects in batches, some of them twice, as one that runs again does. It ends, or is left as it
// runs; an end that is not "done" is marked in the log, in the transaction that stores it.
void StoreWorker::stream() {
  const std::string job = next("job_");
  int64_t number = 0;
  store_.catalog().write([&](Transaction& t) {
    number = t.next_job_number(kKillSession);
    JobRow row = job_row(job, std::string(kKillSession), number);
    row.state = JobState::kRunning;
    t.insert_job(row);
  });
  say_("a j " + job + " " + std::to_string(number));
  std::vector<EffectRow> rows;
  for (uint64_t batch = random_() % 4; batch > 0; --batch) {
    const size_t known = random_() % 2 == 0 ? 0 : rows.size();  // from the first one on, or only what is new
    const std::string tag = job + "." + std::to_string(batch);
    const size_t first = rows.size();
    for (size_t i = 0; i < 1 + random_() % 5; ++i)
      rows.push_back(effect_row(job, static_cast<int64_t>(rows.size()), tag + "#" + std::to_string(i)));
    std::span<EffectRow> sent(rows.begin() + static_cast<ptrdiff_t>(known), rows.end());
    store_.catalog().write([&](Transaction& t) { t.append_effects(kKillSession, sent); });
    say_("a e " + std::to_string(rows[first].sequence) + " " + std::to_string(rows.size() - first) + " " + tag);
  }
  const uint64_t how = random_() % 3;
  if (how == 0) return;
  store_.catalog().write([&](Transaction& t) {
    JobRow row = *t.job_of_session(kKillSession, job);
    row.state = how == 1 ? JobState::kDone : JobState::kFailed;
    row.error_code = how == 1 ? "" : "program_failed";
    if (how != 1) t.mark_end(kKillSession, job, row.state, row.error_code);
    static_cast<void>(t.update_job(row));
  });
}

void StoreWorker::keep_answer() {
  IdempotencyRow row;
  row.principal = "ann";
  row.route = kKillRoute;
  row.key = next("key_");
  row.fingerprint = std::to_string(random_());
  store_.catalog().write([&](Transaction& t) { t.insert_idempotency(row); });
  say_("a k " + row.key + " " + row.fingerprint);
}

// Long values now and then, so that checkpoints happen while we are killed.
void StoreWorker::log() {
  const std::string tag = next("t");
  std::vector<EffectRow> rows;
  const size_t count = 1 + random_() % 5;
  for (size_t i = 0; i < count; ++i) {
    rows.push_back(effect_row("job", -1, tag + "#" + std::to_string(i)));
    if (random_() % 4 == 0) rows.back().name = std::string(60'000, 'n');
  }
  store_.catalog().write([&](Transaction& t) { t.append_effects(kKillSession, rows); });
  say_("a e " + std::to_string(rows.front().sequence) + " " + std::to_string(count) + " " + tag);
}

}  // namespace meshd::testing
