// Records the effects of one run: takes each as it leaves the devices, in order, and keeps it until it is committed;
// supplies infeed entries. Clients do not read from here: the log has what is durable.
//
// Where a run has to wait (an empty infeed queue, too many uncommitted effects), emit() suspends it, records what is
// needed and calls `notify`; the job reads wants(), supplies it, and resumes the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "service/compile/plan/plan.h"
#include "service/core/clock.h"
#include "service/core/locked.h"
#include "service/core/memory_ledger.h"
#include "service/device/effect_sink.h"
#include "service/effects/callback_store.h"
#include "service/effects/effect_kinds.h"
#include "service/effects/infeed_entry.h"
#include "service/tensor/dense_value.h"
#include "storage/rows/rows.h"

namespace meshd::effects {

/// What a client binds to a callback by its index in the text.
struct Binding {
  const EffectKind* kind = nullptr;
  std::string name;
  /// For kinds with a reply: the n-th call gets the n-th list, calls beyond the last get the last.
  std::vector<std::vector<tensor::DenseValue>> answers;
  bool live = false;  ///< calls beyond the last become callback requests to the client while the program runs
};
using Bindings = std::map<int64_t, Binding>;

/// One effect that happened.
struct RecordedEffect {
  const EffectKind* kind = nullptr;
  std::string name;
  bool ordered = false;
  int64_t shard_index = 0;
  int64_t point = 0;   ///< number of the call in the text's order (behaviour E15)
  int64_t device = 0;  ///< on which it happened
  std::vector<tensor::DenseValue> values;
  core::SteadyTime time = {};  ///< when it happened
};

/// A recorded effect as its row keeps it: number `step` of those of `job`.
storage::EffectRow to_row(const RecordedEffect& effect, const std::string& job, int64_t step);

/// Fills in what is not bound (a callback that returns nothing is a `log` named callback_<n>) and checks the rest
/// against the plan; `has_session`: callback requests are possible. Throws invalid_request with pointers into the body
/// for bindings without a callback, callbacks that need replies and have none, replies of another type;
/// effects_not_supported for kinds that cannot be lowered, ordered effects of kinds that are not shardable on several
/// devices, and kinds that are not allowed in the control flow around them.
Bindings check_bindings(Bindings given, const compile::Plan& plan, bool has_session);

/// What a run waits for, or would like its job to do.
struct Wants {
  bool feed = false;  ///< the run waits for more entries of `queue`
  std::string queue;
  bool commit = false;  ///< effects that a client should see while the program runs are not committed yet
  bool room = false;    ///< and so many, or so large ones, that the run waits
  std::optional<CallbackRequest> request;  ///< the run waits for its reply
  [[nodiscard]] bool any() const { return feed || commit || request.has_value(); }
};

/// Which effects a recorder wants committed while the run goes on.
enum class EarlyCommits : uint8_t {
  kNone,      ///< there is no session whose log or queues could take them
  kOutgoing,  ///< those for outgoing queues, and all before them
  kAll,       ///< all; those that are committed leave its memory
};

/// The sink of one run. emit() comes from one thread at a time, the rest from any.
class EffectRecorder final : public device::EffectSink {
 public:
  /// `infeeds` came with the request and are taken first. With a session (`early` is not kNone) more may come from its
  /// queues. `notify` is called when there is something new in wants(); it may be called by emit(), on a thread that
  /// must not wait. `memory` holds the effects that are in the recorder's memory or were taken from it, until it is
  /// destroyed. Where there is none, a run whose effects are all committed early waits for that with the first one that
  /// did not fit, so that each commit lets it go on; any other run ends with memory_exceeded, or with memory_full where
  /// others hold what is missing.
  EffectRecorder(Bindings bindings, std::vector<InfeedEntry> infeeds, EarlyCommits early, std::function<void()> notify,
                 const core::Clock& clock, core::MemoryReservation memory = {});
  device::EffectResult emit(const device::EffectCall& call) override;
  /// Effects so far.
  [[nodiscard]] int64_t count() const;

  [[nodiscard]] Wants wants() const;
  /// More of a queue. Then the run is to be resumed.
  void feed(const std::string& queue, std::vector<InfeedEntry> infeeds);
  /// The reply to callback request `call`. The caller then resumes the run.
  void reply(int64_t call, const std::vector<tensor::DenseValue>& values);
  /// The effects that are not committed as rows of `job`, in order.
  [[nodiscard]] std::vector<storage::EffectRow> open_rows(const std::string& job) const;
  /// When the first of them happened; nothing: there are none.
  [[nodiscard]] std::optional<core::SteadyTime> oldest_open() const;
  /// So many more are committed. True when the run waited for that and is to be resumed.
  bool committed(size_t count);

  /// Once the run is over: the effects in order, without those that were committed and have left its memory.
  std::vector<RecordedEffect> take();
  /// For each of the session's queues the last entry that the run took.
  [[nodiscard]] std::map<std::string, int64_t> used() const;
  /// Entries of the request that the run did not take, by queue.
  [[nodiscard]] std::map<std::string, int64_t> left() const;

 private:
  struct State {
    std::deque<RecordedEffect> effects;
    int64_t first = 0;       // number of the first one in memory
    size_t committed = 0;    // of those in memory
    int64_t open_bytes = 0;  // of those not committed
    core::MemoryReservation memory;
    bool is_short = false;  // an effect did not fit into `memory`, and nothing was committed since
    Wants wants;
    std::map<std::string, std::deque<InfeedEntry>> ready;
    std::map<std::string, int64_t> taken_of_request;
    std::map<std::string, int64_t> used;
    std::vector<int64_t> path;  // of the infeed that took last
    InfeedEntry current;        // what it took: every device gets its part of the same entry
    std::map<int64_t, std::vector<std::vector<std::byte>>> replies;  // to callback requests, until they are used
  };
  void record(const device::EffectCall& call, const EffectKind& kind, const std::string& name);
  /// Effects of this kind are committed while the run goes on.
  [[nodiscard]] bool commits_early(const EffectKind& kind) const;
  /// False: the run has to wait until some are committed.
  bool has_room();
  device::EffectResult take_infeed(const device::EffectCall& call);
  device::EffectResult give(const device::EffectCall& call);
  /// Nothing: the reply has not arrived.
  std::optional<std::vector<std::vector<std::byte>>> reply_to(const device::EffectCall& call, const Binding& binding);

  const Bindings bindings_;
  const EarlyCommits early_;
  const std::function<void()> notify_;
  const core::Clock& clock_;
  core::Locked<State> state_;
  std::map<int64_t, size_t> calls_;  // emit() only: by callback
  int64_t asked_ = 0;                // emit() only: callback requests with a reply
};

}  // namespace meshd::effects
