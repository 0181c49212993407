#include "tests/recovery/kill_history.h"

#include <set>
#include <sstream>
#include <utility>

#include "service/core/error.h"
#include "tests/recovery/kill_protocol.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {

using namespace storage;

void KillHistory::note(const std::string& line) {
  std::istringstream words(line);
  char phase = 0;
  char operation = 0;
  std::string name;
  words >> phase >> operation;
  const bool acknowledged = phase == 'a';
  acknowledged_ += acknowledged ? 1 : 0;
  if (operation == 'c') {
    words >> name;
    arrays_[name] = {};
  } else if (operation == 'd') {
    words >> name;
    arrays_[name].fate = acknowledged ? Fate::kDeleted : Fate::kMaybeDeleted;
  } else if (operation == 'x') {
    std::string output;
    words >> name >> output;
    arrays_[name] = {acknowledged ? Fate::kDonated : Fate::kMaybeDonated, output};
    if (acknowledged) arrays_[output] = {};
  } else if (operation == 'e') {
    int64_t first = 0;
    int64_t count = 0;
    words >> first >> count >> name;
    for (int64_t i = 0; i < count; ++i) {
      const std::string values = name + "#" + std::to_string(i);
      const auto [place, fresh] = effects_.emplace(first + i, values);
      if (!fresh && place->second != values) wrong("sequence " + std::to_string(first + i) + " was given twice");
    }
  } else if (operation == 'j') {
    int64_t number = 0;
    words >> name >> number;
    jobs_[name] = number;
  } else if (operation == 'k') {
    words >> name >> answers_[name];
  } else {
    wrong("not a line of the protocol: " + line);
  }
}

std::vector<std::string> KillHistory::check(Store& store) {
  if (!store.recovery().damaged_arrays.empty())
    wrong("shards of '" + store.recovery().damaged_arrays[0] + "' are gone");
  if (!effects_.empty() || !jobs_.empty() || !arrays_.empty()) {
    check_effects(store);
    check_jobs(store);
  }
  check_arrays(store);
  check_answers(store);
  return std::exchange(wrong_, {});
}

void KillHistory::check_array(Store& store, const ArrayRow& row) {
  const auto shards = store.catalog().read([&](Reader& r) { return r.shards(row.id); });
  if (row.state == ArrayState::kDonated) {
    if (!shards.empty()) wrong("donated array '" + row.id + "' still has shards");
    return;
  }
  if (row.state != ArrayState::kReady) wrong("array '" + row.id + "' is neither ready nor donated");
  if (static_cast<int64_t>(shards.size()) != shard_count_of(row.id)) wrong("array '" + row.id + "' misses shards");
  for (const ShardRow& shard : shards) {
    try {
      if (read_blob(store.blobs(), shard.blob) != shard_payload(row.id, shard.index)) {
        wrong("array '" + row.id + "' has other bytes");
      }
    } catch (const core::Error& error) {
      wrong("array '" + row.id + "' cannot be read: " + error.internal());
    }
  }
}

void KillHistory::check_arrays(Store& store) {
  std::map<std::string, ArrayState> found;
  PageRequest page{.limit = kMaxPageSize, .cursor = {}};
  do {
    const auto got = store.catalog().read([&](Reader& r) { return r.arrays("ann", {}, page); });
    for (const ArrayRow& row : got.items) {
      found.emplace(row.id, row.state);
      check_array(store, row);
    }
    page.cursor = got.next;
  } while (!page.cursor.empty());

  for (auto& [id, array] : arrays_) {
    const auto row = found.find(id);
    const bool there = row != found.end() && row->second == ArrayState::kReady;
    const bool donated = row != found.end() && row->second == ArrayState::kDonated;
    if (array.fate == Fate::kThere && !there) wrong("array '" + id + "' was acknowledged and is lost");
    if (array.fate == Fate::kDeleted && row != found.end()) wrong("array '" + id + "' was deleted and is back");
    if (array.fate == Fate::kDonated && !donated) wrong("array '" + id + "' was donated and is not");
    if (array.fate == Fate::kMaybeDeleted) array.fate = there ? Fate::kThere : Fate::kDeleted;
    if (array.fate == Fate::kMaybeDonated) {
      if (!there && !donated) wrong("array '" + id + "' was to be donated and is lost");
      if (donated != found.contains(array.output)) wrong("donation of '" + id + "' happened by half");
      array.fate = donated ? Fate::kDonated : Fate::kThere;
    }
  }
  // What was made without having been able to say so is there for good from now on.
  for (const auto& [id, state] : found) {
    arrays_.emplace(id, Array{state == ArrayState::kReady ? Fate::kThere : Fate::kDonated, {}});
  }
  std::set<std::string> blobs;
  for (const StoredBlob& blob : store.blobs().list()) blobs.insert(blob.name.substr(0, blob.name.find('.')));
  for (const std::string& stem : blobs) {
    const auto row = found.find(stem);
    if (row == found.end() || row->second != ArrayState::kReady) wrong("blob of '" + stem + "' was not collected");
  }
}

void KillHistory::check_effects(Store& store) {
  int64_t last = 0;
  streamed_.clear();
  for (;;) {
    const auto rows = store.catalog().read([&](Reader& r) { return r.effects(kKillSession, last, kMaxPageSize); });
    if (rows.empty()) break;
    for (const EffectRow& row : rows) {
      if (row.sequence != last + 1) wrong("the log has a gap after " + std::to_string(last));
      last = row.sequence;
      check_stream(row);
      const auto [place, fresh] = effects_.emplace(row.sequence, row.values);
      if (!fresh && place->second != row.values) wrong("effect " + std::to_string(last) + " has changed");
    }
  }
  if (!effects_.empty() && effects_.rbegin()->first > last)
    wrong("effects after " + std::to_string(last) + " are lost");
}

// Effects of a job that streams them are there in their order, each once; the entry that marks its end is the last.
void KillHistory::check_stream(const EffectRow& row) {
  Stream& stream = streamed_[row.job];
  if (row.kind == "failed") {
    if (stream.is_ended) wrong("the end of '" + row.job + "' is marked twice");
    stream.is_ended = true;
  } else if (row.step >= 0) {
    if (stream.is_ended || row.step != stream.count) wrong("effects of '" + row.job + "' are out of order");
    ++stream.count;
  }
}

void KillHistory::check_jobs(Store& store) {
  const JobFilter filter{.session = std::string(kKillSession), .state = {}};
  PageRequest page{.limit = kMaxPageSize, .cursor = {}};
  std::map<std::string, int64_t> found;
  int64_t above = 0;  // number of the job before it in the list, which begins with the newest
  do {
    const auto got = store.catalog().read([&](Reader& r) { return r.jobs("ann", filter, page); });
    for (const JobRow& job : got.items) {
      found.emplace(job.id, job.number);
      if (above != 0 && job.number != above - 1) wrong("job numbers have a gap behind '" + job.id + "'");
      above = job.number;
      const Stream stream = streamed_[job.id];
      if (stream.is_ended != (job.state == JobState::kFailed && stream.count > 0))
        wrong("job '" + job.id + "' is " + std::string(to_string(job.state)) + ", its log says something else");
      if (job.state == JobState::kRunning) wrong("job '" + job.id + "' claims to be running");
    }
    page.cursor = got.next;
  } while (!page.cursor.empty());
  if (above > 1) wrong("the first jobs are lost, before number " + std::to_string(above));
  for (const auto& [id, number] : jobs_) {
    const auto job = found.find(id);
    if (job == found.end() || job->second != number) wrong("job '" + id + "' is lost or has another number");
  }
  jobs_ = std::move(found);
}

void KillHistory::check_answers(Store& store) {
  for (const auto& [key, fingerprint] : answers_) {
    const auto row = store.catalog().read([&](Reader& r) { return r.idempotency("ann", kKillRoute, key); });
    if (!row || row->fingerprint != fingerprint) wrong("the record of key '" + key + "' is lost");
  }
}

}  // namespace meshd::testing
