// Delivers what happens in sessions to their webhooks: at least once, in order, one delivery of a webhook at a time.
//
// A delivery of effects:
//   1. read the log behind what is delivered, at most 256 entries or 256 KiB (or one larger entry);
//   2. commit in the webhook's row which is the last of them: the delivery has its content from here on, also for the
//      process after a crash;
//   3. post it, signed, with the id of the webhook and its first sequence number;
//   4. an answer of 2xx: commit that they are delivered, and begin again. Else wait, and go to 3.
// When the log has nothing new, the end of the session's next job (by number) is delivered in the same way; a job that
// is not over is waited for. So a receiver sees a job's effects before its end, and ends in the order of acceptance.
//
//   webhook whk_1, log 1..5, delivered 2 -> {"first": 3, "last": 5}, id whk_1-e3; killed before the answer: the same
//   again
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "service/core/clock.h"
#include "service/core/memory_ledger.h"
#include "service/effects/effect_log.h"
#include "service/outbound/post_pool.h"
#include "storage/catalog.h"

namespace meshd::webhooks {

/// Makes the texts of deliveries.
struct DeliveryEncoder {
  std::function<std::string(const storage::WebhookRow&, std::vector<storage::EffectRow>)> effects;
  std::function<std::string(const storage::WebhookRow&, const storage::JobRow&)> job_end;
};

struct DispatcherOptions {
  std::chrono::milliseconds first_wait{1'000};  ///< after the first attempt that failed; doubled after each next one
  std::chrono::milliseconds longest_wait{600'000};
  std::chrono::seconds gives_up_after = std::chrono::hours(72);  ///< of failing: the webhook is disabled
  int64_t most_under_way = 32;
  int64_t most_of_principal = 8;  ///< under way: receivers that take their time do not keep those of others waiting
  int64_t most_of_receiver = 4;   ///< the same, of one principal to one host and port
  int64_t text_bytes_per_stored_byte = 6;  ///< of what the encoder makes, at most
};

/// For /metrics. Counters only grow.
struct DispatcherCounters {
  int64_t delivered = 0, failed = 0, disabled = 0;
  int64_t active = 0;     ///< webhooks now
  int64_t under_way = 0;  ///< deliveries now
};

/// Any thread. Destroy it before the pool that it posts with. EffectLog::notify(session) has the session's webhooks
/// looked at: after effects were committed, and after a job is over.
class Dispatcher {
 public:
  /// `failed` is told what could not be done for a webhook apart from its receiver's answers.
  Dispatcher(storage::Catalog& catalog, effects::EffectLog& log, outbound::PostPool& pool, const core::Clock& clock,
             core::MemoryLedgerRef memory, DeliveryEncoder encoder,
             std::function<void(const std::string& webhook, const std::string& reason)> failed,
             DispatcherOptions options = {});
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// Begins to deliver, also what earlier processes have left.
  void start();
  /// A webhook was made or resumed: it is looked at now.
  void changed(const storage::WebhookRow& row);
  /// A webhook was deleted. A delivery under way may still arrive.
  void removed(const std::string& id);
  [[nodiscard]] DispatcherCounters counters() const;

 private:
  using Time = core::SteadyTime;
  /// By both clocks.
  struct Moment {
    core::WallTime wall;
    Time steady;
  };
  /// A webhook as the dispatcher knows it.
  struct Entry {
    std::string principal;
    std::string receiver;  ///< scheme, host and port of its URL
    effects::EffectLog::Subscription subscription;
    bool has_news = true;  ///< something may have to be delivered
    bool is_under_way = false;
    bool is_renewed = false;  ///< made or resumed since it was last looked at
    Time due{};               ///< no attempt before
    Time looked_at{};
    std::optional<Moment> failed_at;  ///< the last attempt that this process saw fail
  };
  /// What subscriptions hold: they may be told while the dispatcher is being destroyed.
  struct Door {
    std::mutex mutex;
    Dispatcher* dispatcher = nullptr;  ///< null: it is gone
  };
  struct Delivery {
    storage::WebhookRow row;  ///< as it is when the delivery is accepted
    std::string id, body;
    core::MemoryReservation memory;
  };
  struct Ended {
    storage::WebhookRow row;
    outbound::PostOutcome outcome;
  };

  void run();
  void wake(const std::string& id);
  void enter(const storage::WebhookRow& row);
  void load();
  /// The webhook that is to be looked at now; empty: none is, until `next`. Of those that may be, one whose principal
  /// has the fewest under way; of these the one that was not looked at for the longest time.
  std::string due_now(Time now, Time& next);
  void look_at(const std::string& id);
  std::optional<Delivery> next_delivery(const std::string& id);
  std::optional<Delivery> effects_delivery(storage::WebhookRow row);
  void post(std::shared_ptr<Delivery> delivery);
  void end(const Ended& ended);
  /// An attempt has failed: how far the wall clock was set forward since the one before it (kSmallestJump and more).
  core::WallTime::duration note_failure(const std::string& id, const Moment& now);
  /// Of one that is deleted or disabled. Where it was resumed meanwhile, it is looked at again.
  void forget(const std::string& id);
  void try_again(const std::string& id, std::chrono::milliseconds wait);
  std::chrono::milliseconds wait_after(int64_t failures, const outbound::PostOutcome& outcome);

  storage::Catalog& catalog_;
  effects::EffectLog& log_;
  outbound::PostPool& pool_;
  const core::Clock& clock_;
  const core::MemoryLedgerRef memory_;
  const DeliveryEncoder encoder_;
  const std::function<void(const std::string&, const std::string&)> failed_;
  const DispatcherOptions options_;
  const std::shared_ptr<Door> door_ = std::make_shared<Door>();
  std::minstd_rand random_;  ///< of the thread: spreads attempts

  mutable std::mutex mutex_;  ///< of the members below; nothing is called under it
  std::condition_variable news_;
  std::map<std::string, Entry> entries_;
  std::deque<Ended> ended_;
  DispatcherCounters counters_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace meshd::webhooks
