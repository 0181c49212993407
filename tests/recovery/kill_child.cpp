// kill_child FOLDER SEED: works on a data folder with four threads for ever and reports on standard output what it was
// told. It is made to be killed; it ends by itself only when something is wrong.
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/recovery/kill_protocol.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using namespace storage;

constexpr int kFatalStatus = 70;
constexpr int kWorkers = 4;

void say(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(STDOUT_FILENO, text.data(), text.size()) != static_cast<ssize_t>(text.size())) ::_exit(0);
}

class Worker {
 public:
  Worker(Store& store, const std::string& name, uint64_t seed) : store_(store), name_(name), random_(seed) {}

  void work() {
    for (;;) {
      switch (random_() % 8) {
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
        default:
          log();
          break;
      }
    }
  }

 private:
  std::string next(const char* prefix) { return prefix + name_ + "-" + std::to_string(++count_); }

  std::vector<CommittedBlob> put_shards(const std::string& array) {
    std::vector<BlobWriter> writers;
    for (int64_t shard = 0; shard < shard_count_of(array); ++shard) {
      const std::string bytes = shard_payload(array, shard);
      writers.push_back(store_.blobs().begin(array + ".s" + std::to_string(shard), static_cast<int64_t>(bytes.size())));
      writers.back().write(0, as_bytes(bytes));
    }
    return commit_blobs(std::move(writers));
  }

  static void insert(Transaction& t, const std::string& array, const std::vector<CommittedBlob>& blobs) {
    t.insert_array(array_row(array));
    for (size_t shard = 0; shard < blobs.size(); ++shard) {
      t.put_shard({array, static_cast<int64_t>(shard), 0, "0", blobs[shard].ref});
    }
  }

  void create() {
    const std::string array = next("arr_");
    const auto blobs = put_shards(array);
    store_.catalog().write([&](Transaction& t) { insert(t, array, blobs); });
    say("a c " + array);
    mine_.push_back(array);
  }

  std::string take_mine() {
    std::swap(mine_[random_() % mine_.size()], mine_.back());
    std::string array = std::move(mine_.back());
    mine_.pop_back();
    return array;
  }

  void donate() {
    if (mine_.empty()) return;
    const std::string array = take_mine();
    const std::string output = next("arr_");
    say("i x " + array + " " + output);
    const auto blobs = put_shards(output);
    store_.catalog().write([&](Transaction& t) {
      t.consume_array(array, "job");
      insert(t, output, blobs);
    });
    say("a x " + array + " " + output);
    mine_.push_back(output);
  }

  void remove() {
    if (mine_.empty()) return;
    const std::string array = take_mine();
    say("i d " + array);
    store_.catalog().write([&](Transaction& t) { t.delete_array(array); });
    say("a d " + array);
  }

  void accept_job() {
    const std::string job = next("job_");
    int64_t number = 0;
    store_.catalog().write([&](Transaction& t) {
      number = t.next_job_number(kKillSession);
      t.insert_job(job_row(job, std::string(kKillSession), number));
    });
    say("a j " + job + " " + std::to_string(number));
    store_.catalog().write([&](Transaction& t) {
      JobRow row = *t.job(job);
      row.state = random_() % 2 == 0 ? JobState::kRunning : JobState::kDone;
      t.update_job(row);
    });
  }

  void keep_answer() {
    IdempotencyRow row;
    row.principal = "ann";
    row.route = kKillRoute;
    row.key = next("key_");
    row.state = IdempotencyState::kDone;
    row.body = std::to_string(random_());
    store_.catalog().write([&](Transaction& t) { t.insert_idempotency(row); });
    say("a k " + row.key + " " + row.body);
  }

  // Long values now and then, so that checkpoints happen while we are killed.
  void log() {
    const std::string tag = next("t");
    std::vector<EffectRow> rows;
    const size_t count = 1 + random_() % 5;
    for (size_t i = 0; i < count; ++i) {
      rows.push_back(effect_row("job", -1, tag + "#" + std::to_string(i)));
      if (random_() % 4 == 0) rows.back().name = std::string(60'000, 'n');
    }
    store_.catalog().write([&](Transaction& t) { t.append_effects(kKillSession, rows); });
    say("a e " + std::to_string(rows.front().sequence) + " " + std::to_string(count) + " " + tag);
  }

  Store& store_;
  std::string name_;
  std::mt19937_64 random_;
  int count_ = 0;
  std::vector<std::string> mine_;
};

int run(const std::string& folder, const std::string& seed) {
  const auto files = real_file_system();
  const core::SystemClock clock;
  Store store({folder,
               {},
               [](const std::string& reason) {
                 std::fprintf(stderr, "fatal: %s\n", reason.c_str());
                 ::_exit(kFatalStatus);
               }},
              *files, clock);
  store.catalog().write([](Transaction& t) {
    if (!t.session(kKillSession)) t.insert_session(session_row(std::string(kKillSession)));
  });
  std::vector<std::jthread> threads;
  for (int worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([&store, &seed, worker] {
      const std::string name = seed + "-" + std::to_string(worker);
      Worker(store, name, name_hash(name)).work();
    });
  }
  threads.clear();
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace meshd::testing

int main(int argc, char** argv) {
  if (argc != 3) return EXIT_FAILURE;
  return meshd::testing::run(argv[1], argv[2]);
}
