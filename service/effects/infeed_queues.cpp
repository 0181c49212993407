#include "service/effects/infeed_queues.h"

#include <fmt/core.h>

#include "service/core/error.h"

namespace meshd::effects {
namespace {

// What a run is given ahead of time.
constexpr size_t kAhead = 8;
constexpr size_t kAheadBytes = size_t{1} << 20;

}  // namespace

InfeedQueues::Appended InfeedQueues::append(const std::string& session, const InfeedEntry& entry,
                                            std::optional<int64_t> number, std::optional<storage::IdempotencyRow> key) {
  if (static_cast<int64_t>(entry.queue.size()) > limits_.name_bytes) {
    throw core::Error("invalid_request", fmt::format("queue: a name has at most {} bytes", limits_.name_bytes),
                      {{"/queue", fmt::format("expected at most {} bytes", limits_.name_bytes)}});
  }
  storage::InfeedRow row;
  row.session = session;
  row.queue = entry.queue;
  row.content = infeed_to_text(entry);
  row.created = clock_.wall();
  Appended appended;
  catalog_.write([&](storage::Transaction& transaction) {
    appended = {};
    int64_t last = 0;
    int64_t waiting = 0;
    int64_t bytes = 0;
    int64_t of_session = 0;
    const auto queues = transaction.infeed_queues(session);
    for (const storage::InfeedQueueRow& queue : queues) {
      bytes += queue.bytes;
      of_session += queue.waiting;
      if (queue.queue != entry.queue) continue;
      last = queue.last;
      waiting = queue.waiting;
    }
    if (number && *number <= last) {
      const auto there = transaction.infeeds(session, entry.queue, *number - 1, 1);
      if (!there.empty() && there.front().number == *number && there.front().content == row.content) {
        appended = {*number, false};
        return;
      }
    }
    if (number && *number != last + 1) {
      throw core::Error("conflict", fmt::format("queue '{}' has had {} entries; the next one has number {}, not {}",
                                                entry.queue, last, last + 1, *number));
    }
    // All queues of the session are looked at for each entry, while other writers wait.
    if (last == 0 && static_cast<int64_t>(queues.size()) >= limits_.queues) {
      throw core::Error("limit_reached",
                        fmt::format("the session has {} queues, which is all that it may have; use one "
                                    "of them, or another session",
                                    queues.size()));
    }
    if (waiting >= limits_.entries || of_session >= limits_.of_session ||
        bytes + static_cast<int64_t>(row.content.size()) > limits_.bytes) {
      throw core::Error(
          "queue_full",
          fmt::format("queue '{}': {} entries of it, {} of all queues and {} bytes wait in this session; at most {} "
                      "entries, {} and {} bytes may",
                      entry.queue, waiting, of_session, bytes, limits_.entries, limits_.of_session, limits_.bytes))
          .with_retry_after(1);
    }
    transaction.append_infeed(row);
    appended = {row.number, true};
    if (key) key->made = std::to_string(row.number);
    transaction.claim_key(key);
  });
  if (appended.is_new) notify(session);
  return appended;
}

std::vector<InfeedEntry> InfeedQueues::after(const std::string& session, const std::string& queue, int64_t after) {
  std::vector<InfeedEntry> out;
  catalog_.read([&](storage::Reader& reader) {
    size_t bytes = 0;
    while (out.size() < kAhead && bytes < kAheadBytes) {
      const auto rows = reader.infeeds(session, queue, after, 1);
      if (rows.empty()) return;
      after = rows.front().number;
      bytes += rows.front().content.size();
      out.push_back(infeed_from_text(queue, after, rows.front().content));
      out.back().from_session = true;
    }
  });
  return out;
}

std::vector<storage::InfeedQueueRow> InfeedQueues::queues(const std::string& session) {
  return catalog_.read([&](storage::Reader& reader) { return reader.infeed_queues(session); });
}

int64_t InfeedQueues::drop(const std::string& session, const std::string& queue) {
  int64_t count = 0;
  catalog_.write([&](storage::Transaction& transaction) { count = transaction.drop_infeeds(session, queue); },
                 storage::Space::kFrees);
  return count;
}

}  // namespace meshd::effects
