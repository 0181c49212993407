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
  archive_all(a, diagnostic.pointer, diagnostic.detail, diagnostic.line, diagnostic.column, diagnostic.excerpt);
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
  archive_all(a, word, detail, internal, diagnostics, retry_after);
  if constexpr (Archive::kReads) {
    error.emplace(core::error_code_from_word(word), detail, diagnostics);
    error->with_internal(internal).with_retry_after(retry_after);
  }
}

template <typename Archive>
void archive(Archive& a, device::NonfiniteSearch& search) {
  archive_all(a, search.nans, search.infinities);
}

// The op and its place in the text are those of the step: rank 0 has the same plan.
template <typename Archive>
void archive(Archive& a, device::FirstNonfinite& found) {
  archive_all(a, found.is_nan, found.device, found.executed, found.step);
}

template <typename Archive>
void archive(Archive& a, device::StepStats& stats) {
  archive_all(a, stats.step, stats.count, stats.time);
}

template <typename Archive>
void archive(Archive& a, device::StepEvent& event) {
  archive_all(a, event.step, event.start, event.time);
}

template <typename Archive>
void archive(Archive& a, device::RunProfile& profile) {
  archive_all(a, profile.steps, profile.events, profile.dropped_events, profile.page_faults, profile.wake_ups);
}

template <typename Archive>
void archive(Archive& a, device::RunStats& stats) {
  archive_all(a, stats.steps, stats.operations, stats.bytes, stats.kernel_calls, stats.handoffs, stats.peak_bytes,
              stats.allocated_bytes, stats.messages, stats.queue_time, stats.run_time, stats.busy_time,
              stats.device_busy, stats.profile, stats.first_nonfinite);
}

template <typename Archive>
void archive(Archive& a, device::ShardFile& file) {
  archive_all(a, file.name, file.length, file.checksum);
}

template <typename Archive>
void archive(Archive& a, device::ResultPlace& place) {
  archive_enum(a, place, device::ResultPlace::kThere);
}

template <typename Archive>
void archive(Archive& a, hosts::ArgumentShard& shard) {
  archive_enum(a, shard.how, hosts::ArgumentShard::How::kRead);
  archive_all(a, shard.entry, shard.file);
}

template <typename Archive>
void archive(Archive& a, hosts::Became::Shard& shard) {
  archive_all(a, shard.result, shard.shard, shard.entry);
}

template <typename Archive>
void archive(Archive& a, hosts::Became& message) {
  archive_all(a, message.run, message.shards, message.drops);
}

template <typename Archive>
void archive(Archive& a, hosts::Drop& message) {
  archive(a, message.entries);
}

template <typename Archive>
void archive(Archive& a, hosts::DiskRequest& message) {
  archive(a, message.number);
  archive_enum(a, message.what, hosts::DiskRequest::What::kWrite);
  archive_all(a, message.name, message.file, message.offset, message.length, message.names, message.run,
              message.results, message.shards);
}

template <typename Archive>
void archive(Archive& a, hosts::DiskAnswer& message) {
  archive_all(a, message.number, message.error, message.file, message.length, message.bytes, message.files);
}

template <typename Archive>
void archive(Archive& a, hosts::Welcome& message) {
  archive_all(a, message.environment, message.device_count, message.plan_threads, message.disabled_passes,
              message.memory_limit_bytes, message.mesh);
}

template <typename Archive>
void archive(Archive& a, hosts::Ready& message) {
  archive_all(a, message.environment, message.problem, message.array_bytes, message.with_runs_bytes);
}

template <typename Archive>
void archive(Archive& a, hosts::Prepare& message) {
  archive_all(a, message.plan, message.record);
}

template <typename Archive>
void archive(Archive& a, hosts::Prepared& message) {
  archive_all(a, message.plan, message.digest, message.error);
}

template <typename Archive>
void archive(Archive& a, hosts::Begin& message) {
  archive_all(a, message.run, message.ticket, message.oldest_live, message.plan, message.devices, message.step_budget,
              message.operation_budget, message.byte_budget, message.profile, message.nonfinite, message.has_effects,
              message.arguments, message.results, message.results_wait, message.drops);
}

template <typename Archive>
void archive(Archive& a, hosts::Cancel& message) {
  archive_all(a, message.run, message.reason);
}

template <typename Archive>
void archive(Archive& a, hosts::Effect& message) {
  archive_all(a, message.run, message.visit, message.effect, message.device, message.path, message.shard,
              message.operands);
}

template <typename Archive>
void archive(Archive& a, hosts::Reply& message) {
  archive_all(a, message.run, message.visit, message.results, message.error);
}

template <typename Archive>
void archive(Archive& a, hosts::Ended& message) {
  archive_all(a, message.run, message.error, message.stats);
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
template std::string encode(Became);
template std::string encode(Drop);
template std::string encode(DiskRequest);
template std::string encode(DiskAnswer);
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
template Became decode(std::string_view);
template Drop decode(std::string_view);
template DiskRequest decode(std::string_view);
template DiskAnswer decode(std::string_view);

}  // namespace meshd::hosts
