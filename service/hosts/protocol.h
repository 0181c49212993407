// The control messages between rank 0 and the others, as values and as bytes (warmup/byte_archive.h). All ranks are the
// same build: the first message is held to that, and there are no versions of the rest.
//
//   rank 0                          rank r
//   kWelcome: settings of all   ->
//                               <-  kReady: its environment, or why it cannot take part
//   kPrepare: a plan's recipe   ->
//                               <-  kPrepared: the plan's digest, or the error of the compiler
//   kBegin: a run of a plan     ->      its arguments follow as blocks
//                               <-  kEffect: an effect of the run
//   kReply: its results         ->
//   kCancel                     ->
//                               <-  kEnded, behind the blocks of its results
//   kBecame: results are shards ->      of arrays now, which the rank keeps
//   kRelease: of a run's results->      what the rank still holds is not needed
//   kDrop: entries              ->
//                               <-  kLost: an entry that could not be kept
//   kDisk: what its disk has    ->
//                               <-  kDiskDone
//   kPing                       ->
//                               <-  kPong
//   kStop                       ->
//                               <-  kStopped
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/core/error.h"
#include "service/device/engine.h"
#include "service/hosts/messages.h"

namespace meshd::hosts {

/// What all ranks have in common, as rank 0 has it.
struct Welcome {
  std::string environment;  ///< build, processor, choices of kernels: ranks whose lines differ do not go together
  int64_t device_count = 0;
  int64_t plan_threads = 0;                  ///< compile::PlanSettings::threads
  std::vector<std::string> disabled_passes;  ///< of compile::kPlanPasses
  int64_t memory_limit_bytes = 0;            ///< EngineOptions::memory_limit_bytes
  std::string mesh;                          ///< whose the ranks' folders are (own_disk.h)
};

struct Ready {
  std::string environment;
  std::string problem;      ///< empty: it takes part
  int64_t array_bytes = 0;  ///< of arrays that it may keep in memory
  int64_t with_runs_bytes = 0;
};

struct Prepare {
  uint64_t plan = 0;   ///< its number
  std::string record;  ///< warmup::encode
};

struct Prepared {
  uint64_t plan = 0;
  std::string digest;  ///< plan_digest
  std::optional<core::Error> error;
};

/// How a rank gets a shard of an argument that its devices hold.
struct ArgumentShard {
  enum class How : uint8_t {
    kSent,   ///< as a block of the run
    kKept,   ///< as a block of the entry, which begins with it
    kThere,  ///< it is the entry
    kTaken,  ///< the same, and the entry ends: the run may write it
    kRead,   ///< from the rank's disk; the entry, if any, begins with it
  };
  How how = How::kSent;
  uint64_t entry = 0;
  device::ShardFile file;
};

struct Begin {
  uint64_t run = 0;          ///< RunRequest::key
  uint64_t ticket = 0;       ///< in the order in which rank 0 began its runs
  uint64_t oldest_live = 0;  ///< no rank has a run with a lower key
  uint64_t plan = 0;
  std::vector<int64_t> devices;
  int64_t step_budget = 0;
  double operation_budget = 0;
  double byte_budget = 0;
  bool profile = false;
  device::NonfiniteSearch nonfinite;
  bool has_effects = false;                  ///< somebody takes them
  std::vector<ArgumentShard> arguments;      ///< of the shards that the rank holds, by argument, then by shard
  std::vector<device::ResultPlace> results;  ///< ApartShards::results
  bool results_wait = false;                 ///< RunRequest::results_wait
  std::vector<uint64_t> drops;               ///< entries, when the arguments are found
};

struct Cancel {
  uint64_t run = 0;
  std::optional<core::Error> reason;
};

struct Effect {
  uint64_t run = 0;
  int64_t visit = 0;
  int32_t effect = 0;  ///< index in Plan::effects
  int64_t device = 0;  ///< id
  std::vector<int64_t> path;
  int64_t shard = 0;
  std::vector<std::string> operands;
};

struct Reply {
  uint64_t run = 0;
  int64_t visit = 0;
  std::vector<std::string> results;
  std::optional<core::Error> error;
};

struct Ended {
  uint64_t run = 0;
  std::optional<core::Error> error;
  device::RunStats stats;
};

struct Became {
  struct Shard {
    uint64_t result = 0;
    int64_t shard = 0;
    uint64_t entry = 0;
  };
  uint64_t run = 0;
  std::vector<Shard> shards;
  std::vector<uint64_t> drops;
};

struct Drop {
  std::vector<uint64_t> entries;
};

/// What rank 0 wants of a rank's disk.
struct DiskRequest {
  enum class What : uint8_t { kList, kOpen, kRead, kClose, kRemove, kWrite };
  uint64_t number = 0;
  What what = What::kList;
  std::string name;                ///< kOpen
  uint64_t file = 0;               ///< kRead, kClose: what kOpen gave
  int64_t offset = 0, length = 0;  ///< kRead
  std::vector<std::string> names;  ///< kRemove; kWrite: of the files to be
  uint64_t run = 0;                ///< kWrite: whose results
  std::vector<uint64_t> results;   ///< kWrite, as names
  std::vector<int64_t> shards;     ///< kWrite, as names
};

struct DiskAnswer {
  uint64_t number = 0;
  std::optional<core::Error> error;
  uint64_t file = 0;                     ///< kOpen; 0: there is none
  int64_t length = 0;                    ///< kOpen: of the file; kRemove: how many
  std::string bytes;                     ///< kRead
  std::vector<device::ShardFile> files;  ///< kList: names, and lengths of whole files; kWrite
};

struct Number {
  uint64_t value = 0;
};

template <typename T>
std::string encode(T message);
/// Throws internal where the text is not encode()'s.
template <typename T>
T decode(std::string_view text);

}  // namespace meshd::hosts
