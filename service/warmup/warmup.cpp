#include "service/warmup/warmup.h"

#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "service/core/error.h"
#include "service/warmup/compile_record.h"

namespace meshd::warmup {
namespace {

constexpr int kNiceness = 10;                     // requests come first
constexpr std::chrono::minutes kAfterRefusal{1};  // nothing is written after the disk has refused a record

// The thread that warms up: what it lowers was asked for by no run.
thread_local bool is_warming = false;

}  // namespace

Warmup::Warmup(compile::Compiler& compiler, storage::EntryFolder& records, const core::Clock& clock,
               WarmupOptions options)
    : compiler_(compiler), records_(records), clock_(clock), options_(options) {
  compiler_.set_observer(this);
}

Warmup::~Warmup() {
  {
    const std::lock_guard held(mutex_);
    stopping_ = ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Warmup::start(std::function<void(const WarmupStats&)> over) {
  if (!records_.is_on()) {
    const std::lock_guard held(mutex_);
    stats_.is_over = true;
    return;
  }
  over_ = std::move(over);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {  // no thread left: programs are compiled when they are asked for
    const std::lock_guard held(mutex_);
    stats_.is_over = true;
  }
}

void Warmup::stop() {
  const std::lock_guard held(mutex_);
  stopping_ = true;
}

WarmupStats Warmup::stats() const {
  const storage::EntryFolder::Stats kept = records_.stats();
  const std::lock_guard held(mutex_);
  WarmupStats out = stats_;
  out.records = kept.entries;
  out.record_bytes = kept.bytes;
  out.unusable = kept.unusable;
  return out;
}

void Warmup::run() {
  // Where the system refuses, the warm-up has the priority of all others.
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNiceness));
  compile_all(clock_.steady());
  if (over_) over_(stats());
  core::SteadyTime saved_at = clock_.steady();
  for (;;) {
    if (write_waiting()) return;
    // It names all records: to write it for each new one would cost more than to compile what is recorded.
    if (clock_.steady() - saved_at >= options_.save_every) {
      records_.save_order();
      saved_at = clock_.steady();
    }
    std::unique_lock held(mutex_);
    wake_.wait_for(held, options_.save_every, [this] { return ending_ || !waiting_.empty(); });
  }
}

bool Warmup::wants_more(core::SteadyTime began) const {
  if (clock_.steady() - began >= options_.most_time || compiler_.fullness() >= options_.most_fullness) return false;
  const std::lock_guard held(mutex_);
  return !stopping_;
}

void Warmup::compile_all(core::SteadyTime began) {
  try {
    for (const std::string& name : records_.names()) {
      write_waiting();
      if (!wants_more(began)) break;
      compile_one(name);
    }
  } catch (const std::bad_alloc&) {
    // No memory for it: what was compiled stays.
  }
  const std::lock_guard held(mutex_);
  stats_.seconds = core::milliseconds_between(began, clock_.steady()) / 1000;
  stats_.is_over = true;
}

void Warmup::compile_one(const std::string& name) {
  const std::optional<std::string> bytes = records_.read(name);
  // A program on which this build crashes must not end each start.
  if (!bytes || !records_.suspend(name)) return;
  std::string failure;
  try {
    is_warming = true;
    const compile::BackgroundWork background;
    const compile::LoweredRef lowered = compile_record(compiler_, decode_record(*bytes));
    if (lowered->id != name) failure = "it is the record of another program";
    // With less memory than before: each start would compile it for nothing.
    if (failure.empty() && !compiler_.keeps(*lowered)) failure = "its plan is larger than the cache";
    const std::lock_guard held(mutex_);
    ++stats_.compiled;
    unused_.insert(lowered->id);
  } catch (const std::bad_alloc&) {
    is_warming = false;
    records_.resume(name);  // nothing is wrong with it
    throw;
  } catch (const core::Error& error) {
    // There is not so much memory, or requests hold it: they come first, and compile it themselves.
    if (error.code() != core::ErrorCode("memory_full")) failure = error.detail();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  is_warming = false;
  records_.resume(name);
  if (!failure.empty()) records_.remove(name, failure);
}

bool Warmup::write_waiting() {
  for (;;) {
    std::optional<Waiting> next;
    {
      const std::lock_guard held(mutex_);
      if (waiting_.empty()) return ending_;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    bool is_kept = false;
    try {
      is_kept = records_.write(next->name, encode(record_of(*next->program, next->request)));
    } catch (const std::bad_alloc&) {
      // As with a disk that refuses: it is recorded when it is used again.
    }
    const std::lock_guard held(mutex_);
    waiting_names_.erase(next->name);
    waiting_bytes_ -= next->bytes;
    if (!is_kept) refused_at_ = clock_.steady();
  }
}

void Warmup::on_lowered(const compile::LoweredProgram& lowered, const compile::LowerRequest& request,
                        bool is_known) noexcept {
  if (is_warming) return;
  try {
    note(lowered, request, is_known);
  } catch (const std::exception&) {
    // No memory: it is recorded when it is used again.
  }
}

void Warmup::note(const compile::LoweredProgram& lowered, const compile::LowerRequest& request, bool is_known) {
  // A plan that is too large for the cache is compiled for each call, after a start as before.
  const bool is_recorded = !records_.is_on() || records_.use(lowered.id) || !compiler_.keeps(lowered);
  {
    const std::lock_guard held(mutex_);
    if (!is_known) {
      ++stats_.misses;
    } else if (!unused_.empty() && unused_.erase(lowered.id) > 0) {
      ++stats_.hits;
    }
    if (is_recorded || (refused_at_ && clock_.steady() - *refused_at_ < kAfterRefusal)) return;
    const int64_t bytes = record_bytes(*lowered.parsed);
    if (bytes > records_.most_entry_bytes() || waiting_bytes_ + bytes > options_.most_waiting_bytes) return;
    if (!waiting_names_.insert(lowered.id).second) return;
    waiting_.push_back({lowered.id, lowered.parsed, request, bytes});
    waiting_bytes_ += bytes;
  }
  wake_.notify_one();
}

}  // namespace meshd::warmup
