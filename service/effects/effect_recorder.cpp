#include "service/effects/effect_recorder.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "service/core/error.h"
#include "service/effects/value_text.h"

namespace meshd::effects {
namespace {

// Effects that go to outgoing queues wait when so much is not committed yet.
constexpr size_t kOpenEffects = 1024;
constexpr int64_t kOpenBytes = int64_t{16} << 20;

// Of an effect beside its values, and of a value beside its bytes.
constexpr int64_t kEffectItself = 256, kValueItself = 128;

int64_t payload_bytes(const RecordedEffect& effect) {
  int64_t bytes = 0;
  for (const tensor::DenseValue& value : effect.values) bytes += value.buffer->size();
  return bytes;
}

int64_t memory_bytes(const RecordedEffect& effect) {
  return kEffectItself + kValueItself * static_cast<int64_t>(effect.values.size()) + payload_bytes(effect);
}

core::Error no_memory_for(int64_t bytes, const core::MemoryReservation& memory) {
  if (bytes > memory.limit_bytes() - memory.bytes()) {
    return {"memory_exceeded",
            fmt::format("the effects of this run, which are kept until it is over, take more than the {} bytes of "
                        "memory that all effects of this server may take; send the job to a session with \"effects\": "
                        "\"streaming\", which puts them into the log while it runs, or log less",
                        memory.limit_bytes())};
  }
  return core::Error("memory_full", "effects of other runs hold the memory that those of this one need")
      .with_retry_after(1);
}

// A kind at a place of the program.
struct Use {
  const EffectKind* kind;
  const compile::PlanEffect* effect;
};

// `log`, `print`: the kinds that `is_wrong` finds, each once, in order of the program.
template <typename IsWrong>
std::string listed(const std::vector<Use>& uses, IsWrong&& is_wrong) {
  std::vector<std::string_view> names;
  for (const Use& use : uses) {
    if (is_wrong(use) && std::find(names.begin(), names.end(), use.kind->name) == names.end())
      names.push_back(use.kind->name);
  }
  std::string out;
  for (const std::string_view name : names) out += (out.empty() ? "`" : ", `") + std::string(name) + "`";
  return out;
}

bool stands_in_control_flow(const compile::Plan& plan, const compile::PlanEffect& effect) {
  for (size_t block = 1; block < plan.blocks.size(); ++block) {
    for (const compile::Step& step : plan.blocks[block].steps) {
      if (step.kind == compile::StepKind::kEffect && &plan.effects[static_cast<size_t>(step.effect)] == &effect)
        return true;
    }
  }
  return false;
}

void check_kinds(const std::vector<Use>& uses, const compile::Plan& plan) {
  const auto refuse = [](const std::string& names, const std::string& message) {
    if (!names.empty()) throw core::Error("effects_not_supported", message + names);
  };
  refuse(listed(uses, [](const Use& use) { return !use.kind->lowerable; }), "Cannot lower program with effects: ");
  refuse(listed(uses,
                [&](const Use& use) { return !use.kind->control_flow && stands_in_control_flow(plan, *use.effect); }),
         "Effects not supported in control flow: ");
  refuse(listed(uses,
                [&](const Use& use) {
                  return !use.kind->shardable && use.effect->point.ordered && plan.device_count > 1;
                }),
         "Ordered effects are not supported for more than 1 device: ");
}

/// What to send for a callback whose results the program waits for.
std::string unbound(const compile::PlanEffect& effect) {
  const std::string number = std::to_string(effect.point.callback);
  return fmt::format(
      "callback {} of the program (line {}) gives values back and nothing answers it: send \"callbacks\": {{\"{}\": "
      "{{\"effect\": \"callback\", \"answers\": [[VALUE, ...], ...]}}}} with its results call by call, or in a session "
      "\"live\": true in place of answers, and answer its calls while the program runs",
      number, effect.location.line, number);
}

}  // namespace

Bindings check_bindings(Bindings given, const compile::Plan& plan, bool has_session) {
  core::Diagnostics wrong;
  std::vector<Use> kinds_used;
  for (const auto& [index, binding] : given) {
    const bool known =
        std::any_of(plan.effects.begin(), plan.effects.end(),
                    [&, n = index](const compile::PlanEffect& effect) { return effect.point.callback == n; });
    if (!known)
      wrong.add(fmt::format("/callbacks/{}", index), fmt::format("the program has no callback with index {}", index));
  }
  for (const compile::PlanEffect& effect : plan.effects) {
    if (effect.point.form != partition::EffectForm::kCallback) continue;
    const std::string pointer = fmt::format("/callbacks/{}", effect.point.callback);
    auto found = given.find(effect.point.callback);
    if (found == given.end()) {
      if (!effect.results.empty()) {
        wrong.add(pointer, unbound(effect));
        continue;
      }
      found =
          given
              .emplace(effect.point.callback,
                       Binding{find_effect_kind("log"), fmt::format("callback_{}", effect.point.callback), {}, false})
              .first;
    }
    const Binding& binding = found->second;
    kinds_used.push_back({binding.kind, &effect});
    if (!effect.results.empty() && !binding.kind->answers) {
      wrong.add(pointer, fmt::format("callback {} gives values back, effect \"{}\" does not", effect.point.callback,
                                     binding.kind->name));
    }
    if (binding.live && effect.results.empty())
      wrong.add(pointer + "/live", "the callback gives nothing back: there is nothing to answer");
    if (binding.live && !has_session)
      wrong.add(pointer + "/live", "callback requests are answered in a session; name one");
    if (effect.results.empty()) continue;
    if (binding.kind->answers && binding.answers.empty() && !binding.live) {
      wrong.add(
          pointer,
          fmt::format(
              "callback {} gives values back: send \"answers\", or answer while the program runs with \"live\": true",
              effect.point.callback));
    }
    for (size_t call = 0; call < binding.answers.size(); ++call) {
      const auto& answer = binding.answers[call];
      bool fits = answer.size() == effect.results.size();
      for (size_t r = 0; fits && r < answer.size(); ++r) fits = answer[r].type == effect.results[r];
      if (!fits) {
        std::string expected;
        for (const tensor::TensorType& type : effect.results)
          expected += fmt::format("{}{}", expected.empty() ? "" : ", ", tensor::to_string(type));
        wrong.add(fmt::format("{}/answers/{}", pointer, call), "expected values of types " + expected);
      }
    }
  }
  wrong.throw_if_any("invalid_request");
  check_kinds(kinds_used, plan);
  return given;
}

storage::EffectRow to_row(const RecordedEffect& effect, const std::string& job, int64_t step) {
  storage::EffectRow row;
  row.job = job;
  row.step = step;
  row.kind = std::string(effect.kind->name);
  row.name = effect.name;
  row.ordered = effect.ordered;
  row.shard_index = effect.shard_index;
  row.is_queued = is_kind_of(row.kind, "outfeed");
  row.values = values_to_text(effect.values);
  put_number<int64_t>(row.values, effect.point);
  put_number<int64_t>(row.values, effect.device);
  return row;
}

EffectRecorder::EffectRecorder(Bindings bindings, std::vector<InfeedEntry> infeeds, EarlyCommits early,
                               std::function<void()> notify, const core::Clock& clock, core::MemoryReservation memory)
    : bindings_(std::move(bindings)), early_(early), notify_(std::move(notify)), clock_(clock) {
  state_.with([&](State& state) {
    state.memory = std::move(memory);
    for (InfeedEntry& entry : infeeds) {
      auto& queue = state.ready[entry.queue];
      entry.number = static_cast<int64_t>(queue.size()) + 1;
      queue.push_back(std::move(entry));
    }
  });
}

void EffectRecorder::record(const device::EffectCall& call, const EffectKind& kind, const std::string& name) {
  RecordedEffect made;
  made.kind = &kind;
  made.name = name;
  made.ordered = call.ordered;
  made.shard_index = call.shard;
  made.point = call.program_point;
  made.device = call.device;
  made.time = clock_.steady();
  for (const device::EffectValue& value : call.operands)
    made.values.push_back(tensor::dense_copy(value.type, value.bytes));
  const int64_t bytes = payload_bytes(made);
  const bool commits = commits_early(kind);
  const bool is_news = state_.with([&](State& state) {
    if (const int64_t held = memory_bytes(made); !state.memory.try_grow(held)) {
      if (early_ != EarlyCommits::kAll) throw no_memory_for(held, state.memory);
      state.memory.grow_regardless(held);  // it has happened
      state.is_short = true;
    }
    state.effects.push_back(std::move(made));
    state.open_bytes += bytes;
    return commits && !std::exchange(state.wants.commit, true);
  });
  if (is_news) notify_();
}

bool EffectRecorder::commits_early(const EffectKind& kind) const {
  return early_ == EarlyCommits::kAll || (early_ == EarlyCommits::kOutgoing && is_kind_of(kind.name, "outfeed"));
}

bool EffectRecorder::has_room() {
  const bool is_full = state_.with([](State& state) {
    state.wants.room =
        state.is_short || state.effects.size() - state.committed >= kOpenEffects || state.open_bytes >= kOpenBytes;
    if (state.wants.room) state.wants.commit = true;
    return state.wants.room;
  });
  if (is_full) notify_();
  return !is_full;
}

device::EffectResult EffectRecorder::emit(const device::EffectCall& call) {
  const partition::EffectForm form =
      call.effect == nullptr ? partition::EffectForm::kCallback : call.effect->point.form;
  if (form == partition::EffectForm::kInfeed) return take_infeed(call);
  if (form == partition::EffectForm::kOutfeed) return give(call);
  const auto found = bindings_.find(call.callback);
  if (found == bindings_.end()) {
    throw core::Error("effects_not_supported", fmt::format("callback {} has nothing behind it", call.callback));
  }
  const Binding& binding = found->second;
  if (call.has_side_effect && commits_early(*binding.kind) && !has_room()) return device::EffectResult::pending();
  std::vector<std::vector<std::byte>> results;
  if (!call.results.empty()) {
    auto reply = reply_to(call, binding);
    if (!reply) return device::EffectResult::pending();
    results = std::move(*reply);
    ++calls_[call.callback];
  }
  if (call.has_side_effect) record(call, *binding.kind, binding.name);
  return device::EffectResult::done(std::move(results));
}

std::optional<std::vector<std::vector<std::byte>>> EffectRecorder::reply_to(const device::EffectCall& call,
                                                                            const Binding& binding) {
  const size_t number = calls_[call.callback];
  if (!binding.live || number < binding.answers.size()) {
    return bytes_of(binding.answers[std::min(number, binding.answers.size() - 1)]);
  }
  std::optional<std::vector<std::vector<std::byte>>> found;
  state_.with([&](State& state) {
    const auto there = state.replies.find(asked_);
    if (there != state.replies.end()) {
      found = std::move(there->second);
      state.replies.erase(there);
      return;
    }
    CallbackRequest request;
    request.call = asked_;
    request.callback = call.callback;
    request.name = binding.name;
    request.ordered = call.ordered;
    request.shard = call.shard;
    request.device = call.device;
    request.point = call.program_point;
    for (const device::EffectValue& value : call.operands)
      request.values.push_back(tensor::dense_copy(value.type, value.bytes));
    request.expected.assign(call.results.begin(), call.results.end());
    state.wants.request = std::move(request);
  });
  if (found) {
    ++asked_;
  } else {
    notify_();
  }
  return found;
}

void EffectRecorder::reply(int64_t call, const std::vector<tensor::DenseValue>& values) {
  state_.with([&](State& state) {
    state.replies[call] = bytes_of(values);
    state.wants.request.reset();
  });
}

device::EffectResult EffectRecorder::take_infeed(const device::EffectCall& call) {
  const std::string& name = call.effect->point.queue;
  enum class Got { kEntry, kNothing, kStop } got = Got::kEntry;
  InfeedEntry entry;
  int64_t taken = 0;
  state_.with([&](State& state) {
    const bool is_same = call.every_device && !state.path.empty() && state.path == call.key->path;
    auto& queue = state.ready[name];
    if (!is_same && queue.empty()) {
      got = early_ != EarlyCommits::kNone ? Got::kStop : Got::kNothing;
      taken = state.taken_of_request[name];
      state.wants.feed = early_ != EarlyCommits::kNone;
      state.wants.queue = name;
      return;
    }
    if (!is_same) {
      state.current = std::move(queue.front());
      queue.pop_front();
      state.path = call.key->path;
      if (state.current.from_session) {
        state.used[name] = state.current.number;
      } else {
        ++state.taken_of_request[name];
      }
    }
    entry = call.every_device ? state.current : std::move(state.current);
  });
  if (got == Got::kStop) {
    notify_();
    return device::EffectResult::pending();
  }
  if (got == Got::kNothing) {
    throw core::Error("invalid_argument",
                      fmt::format("'{}' wants entry {} of queue '{}', the request's infeed has {}; send more, or run "
                                  "in a session and feed its queue",
                                  call.name, taken + 1, name, taken),
                      {{"/infeed", "expected more entries for queue '" + name + "'"}});
  }
  return device::EffectResult::done(results_of(entry, call));
}

device::EffectResult EffectRecorder::give(const device::EffectCall& call) {
  const EffectKind& kind = *find_effect_kind("outfeed");
  if (commits_early(kind) && !has_room()) return device::EffectResult::pending();
  record(call, kind, call.effect->point.queue);
  return device::EffectResult::done();
}

int64_t EffectRecorder::count() const {
  return state_.with([](const State& state) { return state.first + static_cast<int64_t>(state.effects.size()); });
}

Wants EffectRecorder::wants() const {
  return state_.with([](const State& state) { return state.wants; });
}

void EffectRecorder::feed(const std::string& queue, std::vector<InfeedEntry> infeeds) {
  state_.with([&](State& state) {
    for (InfeedEntry& entry : infeeds) state.ready[queue].push_back(std::move(entry));
    state.wants.feed = false;
  });
}

std::vector<storage::EffectRow> EffectRecorder::open_rows(const std::string& job) const {
  return state_.with([&](const State& state) {
    std::vector<storage::EffectRow> out;
    for (size_t i = state.committed; i < state.effects.size(); ++i)
      out.push_back(to_row(state.effects[i], job, state.first + static_cast<int64_t>(i)));
    return out;
  });
}

std::optional<core::SteadyTime> EffectRecorder::oldest_open() const {
  return state_.with([](const State& state) {
    return state.committed < state.effects.size() ? std::optional(state.effects[state.committed].time) : std::nullopt;
  });
}

bool EffectRecorder::committed(size_t count) {
  return state_.with([&](State& state) {
    for (size_t i = state.committed; i < state.committed + count; ++i) {
      state.open_bytes -= payload_bytes(state.effects[i]);
      if (early_ == EarlyCommits::kAll) state.memory.shrink(memory_bytes(state.effects[i]));
    }
    state.is_short = false;
    state.committed += count;
    if (early_ == EarlyCommits::kAll) {
      state.effects.erase(state.effects.begin(), state.effects.begin() + static_cast<ptrdiff_t>(state.committed));
      state.first += static_cast<int64_t>(std::exchange(state.committed, 0));
    }
    state.wants.commit = state.committed < state.effects.size();
    return std::exchange(state.wants.room, false);
  });
}

std::vector<RecordedEffect> EffectRecorder::take() {
  return state_.with([](State& state) {
    std::vector<RecordedEffect> out(std::make_move_iterator(state.effects.begin()),
                                    std::make_move_iterator(state.effects.end()));
    state.first += static_cast<int64_t>(out.size());  // numbering goes on
    state.committed = 0;
    state.effects.clear();
    return out;
  });
}

std::map<std::string, int64_t> EffectRecorder::used() const {
  return state_.with([](const State& state) { return state.used; });
}

std::map<std::string, int64_t> EffectRecorder::left() const {
  return state_.with([](const State& state) {
    std::map<std::string, int64_t> out;
    for (const auto& [queue, entries] : state.ready) {
      const auto count =
          std::count_if(entries.begin(), entries.end(), [](const InfeedEntry& entry) { return !entry.from_session; });
      if (count > 0) out[queue] = count;
    }
    return out;
  });
}

}  // namespace meshd::effects
