// Rank 0's directory of the shards of arrays that other ranks have in their memory, beside those of their runs: a run
// that takes one of them sends no bytes. Rank 0 alone decides what a rank keeps and drops, and says so in messages to
// it, which arrive in order: so the two never disagree.
//
// A shard is named by the version of its array and by its block of the whole ("arr_X.v3", "2x6@4,0"). At a rank it is
// an entry, a number that is used once.
//
// A rank keeps as much as it may have of arrays in memory (`--array-memory`), and no more than its runs leave of what
// it has for both; what was used longest ago goes first.
//
// Example: a rank with 8 MiB for arrays and 12 MiB for arrays and runs together. Runs took a (4 MiB) and b (4 MiB):
// both are there. A run that plans 6 MiB begins: 6 MiB are left for arrays, and a goes. It is over, a is sent again,
// and is kept.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace meshd::hosts {

/// Not synchronised: whoever calls holds the lock under which messages to the ranks are sent. A call that throws has
/// changed nothing that matters, and may be repeated.
class Residents {
 public:
  explicit Residents(int rank_count) : ranks_(static_cast<size_t>(rank_count)) {}

  /// `with_runs_bytes`: of arrays and of what runs plan.
  void set_room(int rank, int64_t array_bytes, int64_t with_runs_bytes);

  struct Shard {
    std::string version;
    std::string block;
    int64_t bytes = 0;
  };
  /// Its entry, which is used now; 0: it is not there.
  uint64_t find(int rank, const Shard& shard);
  /// A new entry for a shard that is not there, once others have made room; 0: it is not to be kept.
  uint64_t add(int rank, const Shard& shard);
  /// Its entry, which a run has for itself from here on; 0: it was not there.
  uint64_t take(int rank, const Shard& shard);
  /// The rank has not kept it after all.
  void lost(int rank, uint64_t entry);
  /// What a run plans at the rank, from its beginning to its end.
  void lend(int rank, int64_t bytes);
  void give_back(int rank, int64_t bytes);
  /// All versions of an array.
  void forget(std::string_view array);
  /// Entries that the rank is to drop, which it has not been told yet.
  [[nodiscard]] std::vector<uint64_t> take_drops(int rank);

  struct Held {
    int64_t shards = 0;
    int64_t bytes = 0;
  };
  [[nodiscard]] Held held(int rank) const;

 private:
  using Name = std::pair<std::string, std::string>;  // version, block
  struct Entry {
    uint64_t number = 0;
    int64_t bytes = 0;
    uint64_t used = 0;
  };
  struct Rank {
    int64_t array_bytes = 0;
    int64_t with_runs_bytes = 0;
    int64_t lent_bytes = 0;
    int64_t bytes = 0;
    std::map<Name, Entry> entries;
    std::map<uint64_t, Name> by_use;
    std::map<uint64_t, Name> by_number;
    std::vector<uint64_t> drops;
  };
  using At = std::map<Name, Entry>::iterator;
  Rank& of(int rank) { return ranks_.at(static_cast<size_t>(rank)); }
  static int64_t room(const Rank& rank);
  static void make_room(Rank& rank, int64_t coming);
  /// Out of the directory.
  static At erase(Rank& rank, At at);

  std::vector<Rank> ranks_;
  uint64_t last_number_ = 0;
  uint64_t uses_ = 0;
};

}  // namespace meshd::hosts
