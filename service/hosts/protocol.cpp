#include "service/hosts/protocol.h"

#include <utility>

#include "service/warmup/byte_archive.h"

// Where the functions of containers find those of structs.
namespace meshd::warmup {

template <typename Archive>
void archive(Archive& a, std::chrono::nanoseconds& time) {
  int64_t count = time.count();
  archive(a, count);
  time = std::chrono::nanoseconds(count);
}

template <typename Archive>
void archive(Archive& a, core::Diagnostic& diagnostic) {
  archive(a, diagnostic.pointer);
  archive(a, diagnostic.detail);
  archive(a, diagnostic.line);
  archive(a, diagnostic.column);
  archive(a, diagnostic.excerpt);
}

template <typename Archive>
void archive(Archive& a, std::optional<core::Error>& error) {
  bool is_there = error.has_value();
  archive(a, is_there);
  if (!is_there) return;
  std::string word, detail, internal;
  std::vector<core::Diagnostic> diagnostics;
  int retry_after = 0;
  if (error) {
    word = error->code().word();
    detail = error->detail();
    internal = error->internal();
    diagnostics = error->diagnostics();
    retry_after = error->retry_after_seconds();
  }
  archive(a, word);
  archive(a, detail);
  archive(a, internal);
  archive(a, diagnostics);
  archive(a, retry_after);
  if constexpr (Archive::kReads) {
    error.emplace(core::error_code_from_word(word), detail, diagnostics);
    error->with_internal(internal).with_retry_after(retry_after);
  }
}

template <typename Archive>
void archive(Archive& a, device::NonfiniteSearch& search) {
  archive(a, search.nans);
  archive(a, search.infinities);
}

// The op and its place in the text are those of the step: rank 0 has the same plan.
template <typename Archive>
void archive(Archive& a, device::FirstNonfinite& found) {
  archive(a, found.is_nan);
  archive(a, found.device);
  archive(a, found.executed);
  archive(a, found.step);
}

template <typename Archive>
void archive(Archive& a, device::StepStats& stats) {
  archive(a, stats.step);
  archive(a, stats.count);
  archive(a, stats.time);
}

template <typename Archive>
void archive(Archive& a, device::StepEvent& event) {
  archive(a, event.step);
  archive(a, event.start);
  archive(a, event.time);
}

template <typename Archive>
void archive(Archive& a, device::RunProfile& profile) {
  archive(a, profile.steps);
  archive(a, profile.events);
  archive(a, profile.dropped_events);
  archive(a, profile.page_faults);
  archive(a, profile.wake_ups);
}

template <typename Archive>
void archive(Archive& a, device::RunStats& stats) {
  archive(a, stats.steps);
  archive(a, stats.operations);
  archive(a, stats.bytes);
  archive(a, stats.kernel_calls);
  archive(a, stats.handoffs);
  archive(a, stats.peak_bytes);
  archive(a, stats.allocated_bytes);
  archive(a, stats.messages);
  archive(a, stats.queue_time);
  archive(a, stats.run_time);
  archive(a, stats.busy_time);
  archive(a, stats.device_busy);
  archive(a, stats.profile);
  archive(a, stats.first_nonfinite);
}

template <typename Archive>
void archive(Archive& a, hosts::Welcome& message) {
  archive(a, message.environment);
  archive(a, message.device_count);
  archive(a, message.plan_threads);
  archive(a, message.disabled_passes);
  archive(a, message.memory_limit_bytes);
}

template <typename Archive>
void archive(Archive& a, hosts::Ready& message) {
  archive(a, message.environment);
  archive(a, message.problem);
}

template <typename Archive>
void archive(Archive& a, hosts::Prepare& message) {
  archive(a, message.plan);
  archive(a, message.record);
}

template <typename Archive>
void archive(Archive& a, hosts::Prepared& message) {
  archive(a, message.plan);
  archive(a, message.digest);
  archive(a, message.error);
}

template <typename Archive>
void archive(Archive& a, hosts::Begin& message) {
  archive(a, message.run);
  archive(a, message.ticket);
  archive(a, message.oldest_live);
  archive(a, message.plan);
  archive(a, message.devices);
  archive(a, message.step_budget);
  archive(a, message.operation_budget);
  archive(a, message.byte_budget);
  archive(a, message.profile);
  archive(a, message.nonfinite);
  archive(a, message.has_effects);
}

template <typename Archive>
void archive(Archive& a, hosts::Cancel& message) {
  archive(a, message.run);
  archive(a, message.reason);
}

template <typename Archive>
void archive(Archive& a, hosts::Effect& message) {
  archive(a, message.run);
  archive(a, message.visit);
  archive(a, message.effect);
  archive(a, message.device);
  archive(a, message.path);
  archive(a, message.shard);
  archive(a, message.operands);
}

template <typename Archive>
void archive(Archive& a, hosts::Reply& message) {
  archive(a, message.run);
  archive(a, message.visit);
  archive(a, message.results);
  archive(a, message.error);
}

template <typename Archive>
void archive(Archive& a, hosts::Ended& message) {
  archive(a, message.run);
  archive(a, message.error);
  archive(a, message.stats);
}

template <typename Archive>
void archive(Archive& a, hosts::Number& message) {
  archive(a, message.value);
}

}  // namespace meshd::warmup

namespace meshd::hosts {

template <typename T>
std::string encode(T message) {
  warmup::ByteWriter writer;
  archive(writer, message);
  return writer.take();
}

template <typename T>
T decode(std::string_view text) {
  warmup::ByteReader reader(text);
  T message;
  archive(reader, message);
  if (!reader.is_at_end()) warmup::throw_damaged("more follows");
  return message;
}

template std::string encode(Welcome);
template std::string encode(Ready);
template std::string encode(Prepare);
template std::string encode(Prepared);
template std::string encode(Begin);
template std::string encode(Cancel);
template std::string encode(Effect);
template std::string encode(Reply);
template std::string encode(Ended);
template std::string encode(Number);
template Welcome decode(std::string_view);
template Ready decode(std::string_view);
template Prepare decode(std::string_view);
template Prepared decode(std::string_view);
template Begin decode(std::string_view);
template Cancel decode(std::string_view);
template Effect decode(std::string_view);
template Reply decode(std::string_view);
template Ended decode(std::string_view);
template Number decode(std::string_view);

}  // namespace meshd::hosts
