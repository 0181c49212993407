#include "service/webhooks/dispatcher.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <tuple>
#include <utility>

#include "service/core/error.h"
#include "service/webhooks/signature.h"

namespace meshd::webhooks {
namespace {

constexpr int64_t kBatchRows = 256;
constexpr int64_t kBatchBytes = int64_t{256} << 10;  // of rows, or one row
constexpr int64_t kLoadedAtOnce = 1'000;
constexpr int kGone = 410;  // the receiver wants nothing more
constexpr std::chrono::milliseconds kMemoryWait{1'000};
constexpr std::chrono::seconds kLongestRetryAfter{3'600};
constexpr std::chrono::seconds kIdle{60};
constexpr std::chrono::minutes kSmallestJump{1};  // of the wall clock against the steady one, which counts for failing
constexpr size_t kLongestError = 500;

/// Example: https://example.org:8443/hook?x=1 -> https://example.org:8443
std::string receiver_of(const std::string& url) {
  constexpr std::string_view kSlashes = "://";
  const size_t scheme = url.find(kSlashes);
  return scheme == std::string::npos ? url : url.substr(0, url.find_first_of("/?", scheme + kSlashes.size()));
}

}  // namespace

Dispatcher::Dispatcher(storage::Catalog& catalog, effects::EffectLog& log, outbound::PostPool& pool,
                       const core::Clock& clock, core::MemoryLedgerRef memory, DeliveryEncoder encoder,
                       std::function<void(const std::string&, const std::string&)> failed, DispatcherOptions options)
    : catalog_(catalog),
      log_(log),
      pool_(pool),
      clock_(clock),
      memory_(std::move(memory)),
      encoder_(std::move(encoder)),
      failed_(std::move(failed)),
      options_(options),
      random_(std::random_device()()) {
  door_->dispatcher = this;
}

Dispatcher::~Dispatcher() {
  {
    const std::lock_guard held(door_->mutex);
    door_->dispatcher = nullptr;
  }
  {
    const std::lock_guard held(mutex_);
    is_stopping_ = true;
  }
  news_.notify_all();
  if (thread_.joinable()) thread_.join();
  pool_.stop();  // what is under way has this object in its hands
}

void Dispatcher::start() {
  load();
  thread_ = std::thread([this] { run(); });
}

void Dispatcher::load() {
  std::string after;
  for (bool goes_on = true; goes_on;) {
    const auto rows =
        catalog_.read([&](storage::Reader& reader) { return reader.webhooks_after(after, kLoadedAtOnce); });
    for (const storage::WebhookRow& row : rows) {
      if (row.state == storage::WebhookState::kActive) enter(row);
    }
    goes_on = static_cast<int64_t>(rows.size()) == kLoadedAtOnce;
    if (goes_on) after = rows.back().id;
  }
}

void Dispatcher::changed(const storage::WebhookRow& row) {
  enter(row);
  news_.notify_all();
}

void Dispatcher::enter(const storage::WebhookRow& row) {
  auto subscription = log_.subscribe(row.session, [door = door_, id = row.id] {
    const std::lock_guard held(door->mutex);
    if (door->dispatcher != nullptr) door->dispatcher->wake(id);
  });
  const std::lock_guard held(mutex_);
  Entry& entry = entries_[row.id];
  entry.principal = row.principal;
  entry.receiver = receiver_of(row.url);
  entry.subscription.swap(subscription);
  entry.has_news = entry.is_renewed = true;
  entry.due = {};
}

void Dispatcher::removed(const std::string& id) {
  effects::EffectLog::Subscription subscription;
  const std::lock_guard held(mutex_);
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return;
  entry->second.has_news = true;
  // What is under way is forgotten when it ends.
  if (entry->second.is_under_way) return;
  subscription.swap(entry->second.subscription);
  entries_.erase(entry);
}

void Dispatcher::wake(const std::string& id) {
  {
    const std::lock_guard held(mutex_);
    const auto entry = entries_.find(id);
    if (entry == entries_.end() || std::exchange(entry->second.has_news, true)) return;
  }
  news_.notify_all();
}

DispatcherCounters Dispatcher::counters() const {
  const std::lock_guard held(mutex_);
  DispatcherCounters out = counters_;
  out.active = static_cast<int64_t>(entries_.size());
  return out;
}

std::string Dispatcher::due_now(Time now, Time& next) {
  if (counters_.under_way >= options_.most_under_way) return {};
  std::map<std::string_view, int64_t> of_principal;
  std::map<std::pair<std::string_view, std::string_view>, int64_t> of_receiver;
  for (const auto& [id, entry] : entries_) {
    if (!entry.is_under_way) continue;
    ++of_principal[entry.principal];
    ++of_receiver[{entry.principal, entry.receiver}];
  }
  const auto count_in = [](const auto& counts, const auto& key) {
    const auto at = counts.find(key);
    return at == counts.end() ? 0 : at->second;
  };
  auto found = entries_.end();
  int64_t least = 0;  // under way, of the principal of `found`
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    const Entry& entry = at->second;
    if (!entry.has_news || entry.is_under_way) continue;
    if (entry.due > now) {
      next = std::min(next, entry.due);
      continue;
    }
    const int64_t own = count_in(of_principal, std::string_view(entry.principal));
    if (own >= options_.most_of_principal) continue;
    const std::pair<std::string_view, std::string_view> receiver(entry.principal, entry.receiver);
    if (count_in(of_receiver, receiver) >= options_.most_of_receiver) continue;
    if (found == entries_.end() || std::tie(own, entry.looked_at) < std::tie(least, found->second.looked_at)) {
      found = at;
      least = own;
    }
  }
  if (found == entries_.end()) return {};
  Entry& entry = found->second;
  entry.has_news = entry.is_renewed = false;  // what comes from now on is news again
  entry.is_under_way = true;
  entry.looked_at = now;
  ++counters_.under_way;
  return found->first;
}

void Dispatcher::run() {
  for (;;) {
    std::string id;
    std::optional<Ended> ended;
    {
      std::unique_lock held(mutex_);
      if (is_stopping_) return;
      const Time now = clock_.steady();
      Time next = now + kIdle;
      if (!ended_.empty()) {
        ended = std::move(ended_.front());
        ended_.pop_front();
      } else {
        id = due_now(now, next);
        if (id.empty()) {
          news_.wait_for(held, next - now);
          continue;
        }
      }
    }
    const std::string subject = ended ? ended->row.id : id;
    try {
      ended ? end(*ended) : look_at(id);
    } catch (const std::exception& error) {
      // The database cannot be read or written, or memory is out: later, perhaps.
      failed_(subject, error.what());
      try_again(subject, options_.first_wait);
    }
  }
}

void Dispatcher::forget(const std::string& id) {
  effects::EffectLog::Subscription subscription;
  const std::lock_guard held(mutex_);
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return;
  if (std::exchange(entry->second.is_under_way, false)) --counters_.under_way;
  if (entry->second.is_renewed) return;
  subscription.swap(entry->second.subscription);
  entries_.erase(entry);
}

void Dispatcher::try_again(const std::string& id, std::chrono::milliseconds wait) {
  const std::lock_guard held(mutex_);
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return;
  if (entry->second.is_under_way) --counters_.under_way;
  entry->second.is_under_way = false;
  entry->second.has_news = true;
  entry->second.due = clock_.steady() + wait;
}

void Dispatcher::look_at(const std::string& id) {
  std::optional<Delivery> delivery = next_delivery(id);
  if (delivery) {
    post(std::make_shared<Delivery>(std::move(*delivery)));
    return;
  }
  const std::lock_guard held(mutex_);
  const auto entry = entries_.find(id);
  if (entry == entries_.end() || !entry->second.is_under_way) return;
  entry->second.is_under_way = false;
  --counters_.under_way;
}

std::optional<Dispatcher::Delivery> Dispatcher::next_delivery(const std::string& id) {
  struct Found {
    std::optional<storage::WebhookRow> webhook;
    bool has_effects = false;
    std::optional<storage::JobRow> job;
  };
  // One snapshot: a job that is over in it has all its effects in it.
  Found found = catalog_.read([&](storage::Reader& reader) {
    Found out;
    out.webhook = reader.webhook(id);
    if (!out.webhook) return out;
    const storage::WebhookRow& row = *out.webhook;
    const auto session = reader.session(row.session);
    out.has_effects = row.wants_effects && session && session->last_sequence > row.sequence;
    if (!out.has_effects && row.wants_jobs) out.job = reader.next_job_of_session(row.session, row.job_number);
    return out;
  });
  if (!found.webhook || found.webhook->state == storage::WebhookState::kDisabled) {
    forget(id);
    return std::nullopt;
  }
  if (found.has_effects) return effects_delivery(std::move(*found.webhook));
  if (!found.job || !storage::is_over(found.job->state)) return std::nullopt;
  Delivery out;
  out.body = encoder_.job_end(*found.webhook, *found.job);
  out.row = std::move(*found.webhook);
  out.row.job_number = found.job->number;
  out.id = fmt::format("{}-j{}", id, found.job->number);
  return out;
}

std::optional<Dispatcher::Delivery> Dispatcher::effects_delivery(storage::WebhookRow row) {
  Delivery out;
  out.memory = core::MemoryReservation(memory_, core::MemoryAccount::kEvents);
  const int64_t most = row.pending > 0 ? row.pending - row.sequence : kBatchRows;
  int64_t stored = 0;
  bool has_memory = true;
  auto rows = log_.after(row.session, row.sequence, std::min(most, storage::kMaxPageSize), [&](int64_t bytes) {
    const bool is_first = stored == 0;
    stored += bytes;
    if (is_first)
      has_memory = out.memory.try_grow_beyond(std::max(stored, kBatchBytes) * options_.text_bytes_per_stored_byte);
    return stored <= kBatchBytes;
  });
  if (!has_memory) {
    try_again(row.id, kMemoryWait);
    return std::nullopt;
  }
  if (rows.empty()) return std::nullopt;  // the session was deleted in between
  if (row.pending != rows.back().sequence) {
    row.pending = rows.back().sequence;
    bool is_there = false;
    catalog_.write([&](storage::Transaction& transaction) { is_there = transaction.update_webhook(row); });
    if (!is_there) {
      forget(row.id);
      return std::nullopt;
    }
  }
  out.id = fmt::format("{}-e{}", row.id, rows.front().sequence);
  out.body = encoder_.effects(row, std::move(rows));
  out.row = std::move(row);
  out.row.sequence = out.row.pending;
  out.row.pending = 0;
  return out;
}

void Dispatcher::post(std::shared_ptr<Delivery> delivery) {
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(clock_.wall().time_since_epoch()).count();
  outbound::PostRequest request;
  request.url = delivery->row.url;
  request.fields = {"Content-Type: application/json", "User-Agent: meshd-webhooks", "webhook-id: " + delivery->id,
                    fmt::format("webhook-timestamp: {}", seconds),
                    "webhook-signature: " + sign(delivery->row.secret, delivery->id, seconds, delivery->body)};
  request.body = std::move(delivery->body);
  pool_.post(std::move(request), [this, delivery](const outbound::PostOutcome& outcome) {
    {
      const std::lock_guard held(mutex_);
      ended_.push_back({std::move(delivery->row), outcome});
    }
    news_.notify_all();
  });
}

void Dispatcher::end(const Ended& ended) {
  storage::WebhookRow row = ended.row;
  const outbound::PostOutcome& outcome = ended.outcome;
  const bool is_accepted = outcome.is_accepted();
  const Moment now{clock_.wall(), clock_.steady()};
  const auto jump = is_accepted ? core::WallTime::duration(0) : note_failure(row.id, now);
  bool is_there = false;
  bool is_disabled = false;
  catalog_.write([&](storage::Transaction& transaction) {
    const auto before = transaction.webhook(row.id);
    is_there = before.has_value();
    if (!before) return;
    if (is_accepted) {
      row.state = before->state;
      row.failures = 0;
      row.failing_since.reset();
      row.last_error.clear();
    } else {
      row = *before;
      ++row.failures;
      row.failing_since = row.failing_since ? *row.failing_since + jump : now.wall;
      row.last_error = outcome.status != 0 ? fmt::format("the receiver answered {}", outcome.status)
                                           : outcome.error.substr(0, kLongestError);
      if (outcome.status == kGone || now.wall - *row.failing_since >= options_.gives_up_after)
        row.state = storage::WebhookState::kDisabled;
    }
    is_disabled = row.state == storage::WebhookState::kDisabled;
    transaction.update_webhook(row);
  });
  {
    const std::lock_guard held(mutex_);
    ++(is_accepted ? counters_.delivered : counters_.failed);
    if (is_disabled && is_there) ++counters_.disabled;
  }
  if (!is_there || is_disabled) {
    forget(row.id);
  } else {
    try_again(row.id, is_accepted ? std::chrono::milliseconds(0) : wait_after(row.failures, outcome));
  }
}

core::WallTime::duration Dispatcher::note_failure(const std::string& id, const Moment& now) {
  const std::lock_guard held(mutex_);
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return {};
  const std::optional<Moment> before = std::exchange(entry->second.failed_at, now);
  if (!before) return {};
  const auto passed = std::chrono::duration_cast<core::WallTime::duration>(now.steady - before->steady);
  const auto jump = now.wall - before->wall - passed;
  return std::chrono::abs(jump) < kSmallestJump ? core::WallTime::duration(0) : jump;
}

std::chrono::milliseconds Dispatcher::wait_after(int64_t failures, const outbound::PostOutcome& outcome) {
  std::chrono::milliseconds wait = options_.first_wait;
  for (int64_t i = 1; i < failures && wait < options_.longest_wait; ++i) wait *= 2;
  wait = std::min(wait, options_.longest_wait);
  // A tenth more or less, so that webhooks that failed together do not come back together.
  const int64_t tenth = std::max<int64_t>(wait.count() / 10, 1);
  wait += std::chrono::milliseconds(std::uniform_int_distribution<int64_t>(-tenth, tenth)(random_));
  if (outcome.retry_after)
    wait = std::max(wait, std::chrono::milliseconds(std::min(*outcome.retry_after, kLongestRetryAfter)));
  return wait;
}

}  // namespace meshd::webhooks
