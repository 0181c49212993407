// storage_bench --fill FOLDER: a data folder of 10,000 arrays and 100,000 finished jobs (tests/system/starts_test.py).
// storage_bench [FOLDER]: how storage does against what the disk itself can, a ratio where there is a peer. FOLDER
// (default a temporary one) must be on the disk that is to be judged. It is held to limits L4, Q3 and
// "metadata commit at most 2 fsyncs, lookups at least 134,000 /s, blobs at least 0.7 of a raw file".
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using namespace storage;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Processor time of all threads: what a rate would be with a core of our own, on a machine that others use too.
double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double percentile(std::vector<double>& values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(part * static_cast<double>(values.size())))];
}

// What the disk gives: append 4 KiB and fsync, again and again.
double raw_fsyncs(const std::string& folder) {
  const std::string path = folder + "/raw";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  const std::string page(4096, 'x');
  constexpr int kCount = 500;
  const auto start = Clock::now();
  for (int i = 0; i < kCount; ++i) {
    if (::pwrite(file, page.data(), page.size(), i * 4096) < 0 || ::fsync(file) != 0) return 0;
  }
  const double seconds = seconds_since(start);
  ::close(file);
  ::unlink(path.c_str());
  return kCount / seconds;
}

// What the disk gives: the 8 MiB of a checkpoint (storage/writer.cpp) written in pages and synced, which no commit goes
// past.
void raw_checkpoints(const std::string& folder) {
  const std::string path = folder + "/raw";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  const std::string page(4096, 'x');
  constexpr int kCount = 20, kPages = 2000;
  std::vector<double> times;
  for (int i = 0; i < kCount; ++i) {
    const auto start = Clock::now();
    for (int p = 0; p < kPages; ++p) {
      if (::pwrite(file, page.data(), page.size(), (int64_t{i} * kPages + p) * 4096) < 0) return;
    }
    if (::fdatasync(file) != 0) return;
    times.push_back(seconds_since(start));
  }
  ::close(file);
  ::unlink(path.c_str());
  std::printf("raw: 8 MiB written in pages and synced, p50 %.2f ms p90 %.2f ms\n", percentile(times, 0.5) * 1e3,
              percentile(times, 0.9) * 1e3);
}

// One caller that waits for each commit.
void single_commits(Catalog& catalog, double raw) {
  constexpr int kCount = 1000;
  std::vector<double> latencies;
  const auto start = Clock::now();
  for (int i = 0; i < kCount; ++i) {
    const auto before = Clock::now();
    catalog.write([&](Transaction& t) { t.insert_array(array_row("arr_single_" + std::to_string(i))); });
    latencies.push_back(seconds_since(before));
  }
  const double rate = kCount / seconds_since(start);
  std::printf("one caller: %.0f commits/s (%.2f of raw fsyncs), p50 %.0f us, p99 %.0f us\n", rate, rate / raw,
              percentile(latencies, 0.5) * 1e6, percentile(latencies, 0.99) * 1e6);
}

std::vector<EffectRow> effect_rows(int count) {
  return std::vector<EffectRow>(static_cast<size_t>(count),
                                effect_row("job_01890000-0000-7000-8000-000000000000", -1,
                                           "[{\"dtype\":\"float32\",\"shape\":[],\"data\":0.125}]"));
}

// `sessions` sessions, each with `depth` appends of `rows` effects under way.
void grouped_effects(Catalog& catalog, int sessions, int depth, int rows, double duration) {
  for (int s = 0; s < sessions; ++s) {
    catalog.write([&](Transaction& t) {
      const std::string id = "ses_" + std::to_string(depth) + "_" + std::to_string(rows) + "_" + std::to_string(s);
      t.insert_session(session_row(id));
    });
  }
  const CatalogCounters before = catalog.counters();
  std::mutex mutex;
  std::condition_variable idle;
  int64_t open = 0;
  std::vector<double> latencies;
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  std::function<void(int)> submit = [&](int s) {
    const auto sent = Clock::now();
    catalog.write_async(
        [s, depth, rows](Transaction& t) {
          std::vector<EffectRow> effects = effect_rows(rows);
          t.append_effects("ses_" + std::to_string(depth) + "_" + std::to_string(rows) + "_" + std::to_string(s),
                           effects);
        },
        [&, s, sent](const std::exception_ptr&) {
          const bool more = seconds_since(start) < duration;
          {
            const std::lock_guard<std::mutex> held(mutex);
            latencies.push_back(seconds_since(sent));
            if (!more) --open;
          }
          if (more) {
            submit(s);
          } else {
            idle.notify_one();
          }
        });
  };
  for (int i = 0; i < sessions * depth; ++i) {
    {
      const std::lock_guard<std::mutex> held(mutex);
      ++open;
    }
    submit(i % sessions);
  }
  std::unique_lock<std::mutex> held(mutex);
  idle.wait(held, [&] { return open == 0; });
  const double seconds = seconds_since(start);
  const CatalogCounters after = catalog.counters();
  const double transactions = static_cast<double>(after.transactions - before.transactions);
  std::printf(
      "%d sessions x %d under way, %d effects each: %.0f effects/s (%.0f a cpu second), %.0f transactions/s, %.1f a "
      "commit, "
      "ack p50 %.2f ms p99 %.2f ms, log %.1f MiB, %ld checkpoints\n",
      sessions, depth, rows, transactions * rows / seconds, transactions * rows / (cpu_seconds() - cpu),
      transactions / seconds, transactions / static_cast<double>(after.commits - before.commits),
      percentile(latencies, 0.5) * 1e3, percentile(latencies, 0.99) * 1e3,
      static_cast<double>(after.wal_bytes) / (1 << 20), static_cast<long>(after.checkpoints - before.checkpoints));
}

// Each millisecond's share of `rate` effects a second is submitted when it is due, whether or not what came before has
// been acknowledged: the time of an acknowledgement counts from then, so that who waits behind a stall is counted too.
void paced_effects(Catalog& catalog, int sessions, int rows, int rate, double duration) {
  for (int s = 0; s < sessions; ++s) {
    catalog.write([&](Transaction& t) { t.insert_session(session_row("ses_paced_" + std::to_string(s))); });
  }
  const int count = static_cast<int>(duration * rate / rows);
  std::mutex mutex;
  std::condition_variable idle;
  int open = count;
  std::vector<double> latencies;
  latencies.reserve(static_cast<size_t>(count));
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i) {
    const auto due = start + std::chrono::milliseconds(static_cast<int64_t>(i) * rows * 1000 / rate);
    std::this_thread::sleep_until(due);
    catalog.write_async(
        [s = i % sessions, rows](Transaction& t) {
          std::vector<EffectRow> effects = effect_rows(rows);
          t.append_effects("ses_paced_" + std::to_string(s), effects);
        },
        [&, due](const std::exception_ptr&) {
          const std::lock_guard<std::mutex> held(mutex);
          latencies.push_back(seconds_since(due));
          if (--open == 0) idle.notify_one();
        });
  }
  std::unique_lock<std::mutex> held(mutex);
  idle.wait(held, [&] { return open == 0; });
  std::printf(
      "%d sessions, %d effects each, %d effects/s asked for: %.0f effects/s, ack p50 %.2f ms p99 %.2f ms, most %.2f "
      "ms\n",
      sessions, rows, rate, static_cast<double>(count) * rows / seconds_since(start), percentile(latencies, 0.5) * 1e3,
      percentile(latencies, 0.99) * 1e3, percentile(latencies, 1) * 1e3);
}

void lookups(Catalog& catalog) {
  constexpr int kCount = 200'000;
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  int64_t found = 0;
  for (int i = 0; i < kCount; ++i) {
    const std::string id = "arr_single_" + std::to_string(i % 1000);
    found += catalog.read([&](Reader& reader) { return reader.array(id).has_value(); }) ? 1 : 0;
  }
  std::printf("lookups of whole array rows, one thread: %.0f /s, %.0f a cpu second (%ld found)\n",
              kCount / seconds_since(start), kCount / (cpu_seconds() - cpu), static_cast<long>(found));
}

void blobs(Store& store, const std::string& folder) {
  constexpr int64_t kBytes = 256 << 20;
  const std::string piece(1 << 20, 'p');
  for (int round = 0; round < 3; ++round) {
    const std::string path = folder + "/raw";
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    auto start = Clock::now();
    for (int64_t offset = 0; offset < kBytes; offset += 1 << 20) {
      if (::pwrite(file, piece.data(), piece.size(), offset) < 0) return;
    }
    if (::fsync(file) != 0) return;
    const double raw = seconds_since(start);
    ::close(file);
    ::unlink(path.c_str());
    start = Clock::now();
    BlobWriter writer = store.blobs().begin("bench" + std::to_string(round), kBytes);
    for (int64_t offset = 0; offset < kBytes; offset += 1 << 20) writer.write(offset, as_bytes(piece));
    const CommittedBlob blob = writer.commit();
    const double ours = seconds_since(start);
    start = Clock::now();
    store.blobs().verify(blob.ref);
    std::printf("blob of 256 MiB: written %.2f GB/s, raw file %.2f GB/s (ratio %.2f), read and checked %.2f GB/s\n",
                kBytes / ours / 1e9, kBytes / raw / 1e9, raw / ours, kBytes / seconds_since(start) / 1e9);
  }
}

// 10,000 arrays and 100,000 jobs; a tenth of these are not over where that is asked for.
void fill(const std::string& folder, bool with_open_jobs) {
  OpenStore store(folder);
  for (int batch = 0; batch < 100; ++batch) {
    std::vector<BlobWriter> writers;
    for (int i = 0; i < 100; ++i) {
      writers.push_back(store->blobs().begin("arr_restart_" + std::to_string(batch * 100 + i) + ".s0", 100));
    }
    const std::vector<CommittedBlob> blobs = commit_blobs(std::move(writers));
    store->catalog().write([&](Transaction& t) {
      for (const CommittedBlob& blob : blobs) {
        const std::string id = blob.ref.name.substr(0, blob.ref.name.find('.'));
        t.insert_array(array_row(id));
        t.put_shard({id, 0, blob.ref});
      }
      if (batch == 0) t.insert_session(session_row("ses_restart"));
      for (int i = 0; i < 1000; ++i) {
        const int64_t number = t.next_job_number("ses_restart");
        JobRow row = job_row("job_restart_" + std::to_string(number), "ses_restart", number);
        row.request = std::string(500, 'r');
        row.state = JobState::kDone;
        if (with_open_jobs && number % 10 == 0) row.state = number % 100 == 0 ? JobState::kRunning : JobState::kQueued;
        t.insert_job(row);
      }
    });
  }
}

void restart(const std::string& folder) {
  fill(folder, true);
  const auto start = Clock::now();
  OpenStore store(folder);
  const double opened = seconds_since(start);
  PageRequest page{.limit = kMaxPageSize, .cursor = {}};
  int64_t queued = 0;
  do {
    const auto got = store->catalog().read([&](Reader& reader) { return reader.queued_jobs(page); });
    queued += static_cast<int64_t>(got.items.size());
    page.cursor = got.next;
  } while (!page.cursor.empty());
  std::printf("restart with 10,000 arrays and 100,000 jobs: open %.3f s, list of %ld queued jobs %.3f s\n", opened,
              static_cast<long>(queued), seconds_since(start) - opened);
}

int64_t memory_bytes(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return std::stoll(line.substr(std::strlen(field))) * 1024;
  }
  return 0;
}

// A session of 100,000 jobs and as many effects is deleted, while another client writes.
void session_deletion(const std::string& folder) {
  constexpr int kRows = 100'000;
  OpenStore store(folder);
  for (int batch = 0; batch < kRows / 1000; ++batch) {
    store->catalog().write([&](Transaction& t) {
      if (batch == 0) t.insert_session(session_row("ses_many"));
      std::vector<EffectRow> effects;
      for (int i = 0; i < 1000; ++i) {
        const int64_t number = t.next_job_number("ses_many");
        JobRow row = job_row("job_many_" + std::to_string(number), "ses_many", number);
        row.state = JobState::kDone;
        row.finished = at(number);
        row.answer = std::string(500, 'a');
        t.insert_job(row);
        effects.push_back(effect_row(row.id, 0, std::string(200, 'e')));
      }
      t.append_effects("ses_many", effects);
    });
  }
  const auto disk_bytes = [&] {
    int64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      bytes += entry.is_regular_file() ? static_cast<int64_t>(entry.file_size()) : 0;
    return bytes;
  };
  const int64_t memory = memory_bytes("VmRSS:"), disk = disk_bytes();
  std::atomic<bool> done = false;
  double longest = 0;
  std::thread other([&] {
    for (int i = 0; !done; ++i) {
      const auto start = Clock::now();
      store->catalog().write([&](Transaction& t) { t.insert_array(array_row("arr_beside_" + std::to_string(i))); });
      longest = std::max(longest, seconds_since(start));
    }
  });
  const auto start = Clock::now();
  store->catalog().write([](Transaction& t) { t.delete_session("ses_many"); });
  const double answered = seconds_since(start);
  int64_t peak = 0, wal = 0;
  while (store->catalog().read([](Reader& reader) { return reader.has_deleted_sessions(); })) {
    store->catalog().write([](Transaction& t) { t.remove_deleted_sessions(); });
    peak = std::max(peak, memory_bytes("VmRSS:"));
    wal = std::max(wal, store->catalog().counters().wal_bytes);
  }
  const double removed = seconds_since(start);
  done = true;
  other.join();
  std::printf(
      "session of 100,000 jobs and 100,000 effects deleted: answered in %.1f ms, removed in %.2f s; memory +%.1f MiB, "
      "files %.0f -> %.0f MiB, log at most %.1f MiB; longest write beside it %.0f ms\n",
      answered * 1e3, removed, static_cast<double>(peak - memory) / (1 << 20), static_cast<double>(disk) / (1 << 20),
      static_cast<double>(disk_bytes()) / (1 << 20), static_cast<double>(wal) / (1 << 20), longest * 1e3);
}

}  // namespace
}  // namespace meshd::testing

int main(int argc, char** argv) {
  using namespace meshd::testing;
  if (argc > 2 && std::string_view(argv[1]) == "--fill") {
    fill(argv[2], false);
    return 0;
  }
  const TempFolder temporary;
  const std::string folder = argc > 1 ? argv[1] : temporary.path();
  const double raw = raw_fsyncs(folder);
  std::printf("raw: %.0f appends of 4 KiB with fsync /s\n", raw);
  raw_checkpoints(folder);
  {
    OpenStore store(folder + "/data");
    single_commits(store->catalog(), raw);
    grouped_effects(store->catalog(), 16, 1, 1, 3);
    grouped_effects(store->catalog(), 16, 8, 1, 3);
    grouped_effects(store->catalog(), 16, 8, 8, 3);
    paced_effects(store->catalog(), 16, 8, 50'000, 3);
    lookups(store->catalog());
    blobs(*store, folder);
  }
  restart(folder + "/restart");
  session_deletion(folder + "/deletion");
  return 0;
}
