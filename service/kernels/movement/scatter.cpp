#include "service/kernels/movement/scatter.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "service/core/checked_math.h"

namespace meshd::kernels {
namespace {

constexpr int64_t kCopiedAtOnce = int64_t{4} << 20;
// A scatter of fewer updates is not worth a barrier, nor is one of windows that take no longer than sorting their
// tuples.
constexpr int64_t kMinSplitUpdates = 1 << 15;
constexpr int64_t kMinSplitWindow = 16;
constexpr int64_t kBucketUpdates = 1 << 14;
constexpr int64_t kBucketElements = 1 << 18;
constexpr int64_t kMaxBuckets = 32;
// Arrays that stay in the second level cache: to combine runs as they come takes less time than two threads take to
// sort them first. (20,000 runs of 64 floats into 1,000: 170 us, and 330 sorted.)
constexpr int64_t kMostCachedBytes = 256 * 1024;
// Tuples are sorted in chunks, on all threads.
constexpr int64_t kMostChunkTuples = 1 << 13;
constexpr int64_t kLeastChunkTuples = 1 << 10;
constexpr int64_t kWantedChunks = 16;
// A sum of parts takes so many updates, and so many for each element of all parts.
constexpr int64_t kMinPartsUpdates = 1 << 16;
constexpr int64_t kPartUpdates = 4;
constexpr int64_t kParts = 8;                 // for up to so many threads, and as even for two and four
constexpr int64_t kCombinedAtOnce = 1 << 12;  // elements of many short rows between two checkpoints
constexpr int64_t kUpdatedAtOnce = 1 << 16;   // likewise, in one loop
constexpr int64_t kAddedAtOnce = 1 << 12;     // elements of one kernel call, and of a work item at least
// Longer runs are worth a kernel call each.
constexpr int64_t kMostLineRun = 256;
constexpr int64_t kCacheLine = 64;

// The body returns its updates unchanged.
bool is_replacement(const TileProgram& body) {
  if (!body.instructions.empty() || body.outputs.size() * 2 != static_cast<size_t>(body.input_count)) return false;
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    if (body.outputs[i] != body.outputs.size() + i) return false;
  }
  return true;
}

// Windows of a run of tuples; those out of bounds are to be skipped.
struct RunWindows {
  const IndexRun& run;
  [[nodiscard]] size_t size() const { return run.operand.size(); }
  [[nodiscard]] bool is_inside(size_t i) const { return run.operand[i] >= 0; }
  [[nodiscard]] int64_t array_at(size_t i) const { return run.operand[i]; }
  [[nodiscard]] int64_t update_at(size_t i) const { return run.slice[i]; }
};

// Windows of one bucket in one chunk, all in bounds.
struct EntryWindows {
  std::span<const ElementRun> entries;
  [[nodiscard]] size_t size() const { return entries.size(); }
  [[nodiscard]] bool is_inside(size_t /*i*/) const { return true; }
  [[nodiscard]] int64_t array_at(size_t i) const { return entries[i].array_at; }
  [[nodiscard]] int64_t update_at(size_t i) const { return entries[i].update_at; }
};

// The largest step such that every start of a window is a multiple of it; 0 where all windows start at 0.
int64_t common_step(const IndexTable& table) {
  int64_t step = 0;
  for (const IndexComponent& component : table.components) {
    if (component.last_start > 0) step = std::gcd(step, component.stride);
  }
  for (size_t d = 0; d < table.batch.size(); ++d) {
    if (table.batch[d] > 1) step = std::gcd(step, table.operand_strides[d]);
  }
  return step;
}

}  // namespace

Scatter::Scatter(IndexTable table, const tensor::Dims& window, tensor::Dims update_strides, tensor::Dims array_strides,
                 int64_t array_elements, TileProgram body)
    : table_(std::move(table)), body_(std::move(body)), array_elements_(array_elements) {
  is_empty_ = tensor::element_count(window) == 0 || table_.count() == 0;
  if (!is_empty_) plan_work_items(window, array_strides);
  // The innermost loops that run through both arrays side by side become one run.
  size_t last = window.size();
  int64_t expected = 1;
  while (last > 0 &&
         (window[last - 1] == 1 || (update_strides[last - 1] == expected && array_strides[last - 1] == expected))) {
    expected *= window[--last];
  }
  run_length_ = expected;
  const auto head = [last](tensor::Dims dims) {
    dims.resize(last);
    return dims;
  };
  outer_ = head(window);
  outer_update_ = head(std::move(update_strides));
  outer_array_ = head(std::move(array_strides));

  for (size_t i = 0; i < body_.outputs.size(); ++i) elem_sizes_.push_back(tensor::size_bytes(body_.registers[i]));
  lanes_ = std::min(tile_lanes(body_), std::max<int64_t>(run_length_, 1));
  const ScalarOp op = as_single_binary(body_);
  if (is_replacement(body_)) {
    apply_ = Apply::kReplace;
  } else if (op != ScalarOp::kCopy) {
    binary_ = body_.instructions.front().kernel;
    apply_ = Apply::kBinary;
  }
  if (is_empty_ || elem_sizes_.size() != 1 || apply_ == Apply::kProgram || run_length_ > kMostLineRun) return;
  const ElementUpdate update = apply_ == Apply::kReplace ? replacing_update(elem_sizes_[0], run_length_)
                                                         : combining_update(op, body_.registers[0], run_length_);
  if (chunk_count_ > 0) {
    if (!outer_.empty()) return;
    update_ = update;
    if (array_elements_ * elem_sizes_[0] > kMostCachedBytes) return;
  }
  lines_ = ScatterLines::make(table_, {outer_, outer_update_, outer_array_}, run_length_, elem_sizes_[0], update);
  if (chunk_count_ > 0) {
    if (!lines_) return;
    chunk_count_ = 0;
    bucket_count_ = 1;
    return;
  }
  if (lines_ && apply_ == Apply::kBinary) plan_parts(op, table_.count() * tensor::element_count(window));
}

void Scatter::plan_parts(ScalarOp op, int64_t updates) {
  const Identity identity = identity_of(op);
  if (identity != Identity::kSum && identity != Identity::kZero) return;
  // Long sums of narrow floats are what their rounding makes of them, one after the other.
  if (tensor::is_float(body_.registers[0]) && elem_sizes_[0] < 4) return;
  if (updates < kMinPartsUpdates || array_elements_ > updates / (kParts * kPartUpdates)) return;
  if (lines_->line_count() < kParts) return;
  part_count_ = kParts;
  part_bytes_ = core::round_up(array_elements_ * elem_sizes_[0], kCacheLine);
  bucket_elements_ = std::max<int64_t>(core::ceil_div(array_elements_, kParts), kAddedAtOnce);
  bucket_count_ = core::ceil_div(array_elements_, bucket_elements_);
}

void Scatter::plan_work_items(const tensor::Dims& window, const tensor::Dims& array_strides) {
  int64_t span = 1;
  for (size_t d = 0; d < window.size(); ++d) span += (window[d] - 1) * array_strides[d];
  const int64_t tuples = table_.count();
  const int64_t window_elements = tensor::element_count(window);
  const int64_t updates = tuples * window_elements;
  const int64_t row = common_step(table_);
  if (updates < kMinSplitUpdates || window_elements < kMinSplitWindow) return;
  if (row < span || array_elements_ < 2 * row) return;
  // Entries are 32 bits wide. Updates are dense, so that their offsets are below their number.
  if (std::max(array_elements_, updates) > INT64_C(0xFFFFFFFF)) return;
  const int64_t rows = core::ceil_div(array_elements_, row);
  const int64_t most = std::max(updates / kBucketUpdates, array_elements_ / kBucketElements);
  const int64_t wanted = std::clamp<int64_t>(most, 2, std::min(kMaxBuckets, rows));
  bucket_elements_ = std::max<int64_t>(2, core::ceil_div(rows, wanted) * row);
  bucket_count_ = core::ceil_div(array_elements_, bucket_elements_);
  if (bucket_count_ < 2) return;
  chunk_tuples_ = std::clamp(core::ceil_div(tuples, kWantedChunks), kLeastChunkTuples, kMostChunkTuples);
  chunk_count_ = core::ceil_div(tuples, chunk_tuples_);
}

// The ends of the buckets, then the entries.
int64_t Scatter::chunk_bytes() const {
  const int64_t tuples = std::min(chunk_tuples_, table_.count());
  return core::round_up(
      bucket_count_ * static_cast<int64_t>(sizeof(uint32_t)) + tuples * static_cast<int64_t>(sizeof(ElementRun)),
      kCacheLine);
}

int64_t Scatter::workspace_bytes() const {
  return chunk_count_ * chunk_bytes() + std::max<int64_t>(part_count_ - 1, 0) * part_bytes_;
}

// Combines runs of elements; holds the memory that a body needs.
struct Scatter::Rows {
  const Scatter& scatter;
  TileScratch scratch;

  explicit Rows(const Scatter& of) : scatter(of), scratch(of.body_, of.lanes_) {}

  void apply(std::byte* const* arrays, int64_t array_at, const std::byte* const* updates, int64_t update_at) {
    const std::vector<int64_t>& sizes = scatter.elem_sizes_;
    const int64_t length = scatter.run_length_;
    if (scatter.apply_ == Apply::kReplace) {
      for (size_t k = 0; k < sizes.size(); ++k) {
        std::memcpy(arrays[k] + array_at * sizes[k], updates[k] + update_at * sizes[k],
                    static_cast<size_t>(length * sizes[k]));
      }
      return;
    }
    if (scatter.apply_ != Apply::kProgram) {
      const std::byte* operands[2] = {arrays[0] + array_at * sizes[0], updates[0] + update_at * sizes[0]};
      scatter.binary_(operands, arrays[0] + array_at * sizes[0], length);
      return;
    }
    for (int64_t lane = 0; lane < length; lane += scatter.lanes_) {
      const int64_t count = std::min(scatter.lanes_, length - lane);
      for (size_t k = 0; k < sizes.size(); ++k) {
        const auto bytes = static_cast<size_t>(count * sizes[k]);
        std::memcpy(scratch.reg(static_cast<uint16_t>(k)), arrays[k] + (array_at + lane) * sizes[k], bytes);
        std::memcpy(scratch.reg(static_cast<uint16_t>(sizes.size() + k)), updates[k] + (update_at + lane) * sizes[k],
                    bytes);
      }
      run_tile(scatter.body_, scratch, count);
      for (size_t k = 0; k < sizes.size(); ++k) {
        std::memcpy(arrays[k] + (array_at + lane) * sizes[k], scratch.reg(scatter.body_.outputs[k]),
                    static_cast<size_t>(count * sizes[k]));
      }
    }
  }
};

template <typename Windows>
void Scatter::combine(const Windows& windows, Rows& rows, const ScatterCall& call) const {
  const int64_t ahead_bytes = std::min(kPrefetchBytes, run_length_ * elem_sizes_[0]);
  tensor::Dims index(outer_.size());
  int64_t combined = 0;  // elements since the last checkpoint
  for (size_t i = 0; i < windows.size(); ++i) {
    if (i + kPrefetchRuns < windows.size()) {
      const std::byte* const ahead = call.updates[0] + windows.update_at(i + kPrefetchRuns) * elem_sizes_[0];
      for (int64_t at = 0; at < ahead_bytes; at += kCacheLine) __builtin_prefetch(ahead + at);
    }
    if (!windows.is_inside(i)) continue;
    int64_t array_at = windows.array_at(i);
    int64_t update_at = windows.update_at(i);
    std::fill(index.begin(), index.end(), 0);
    for (;;) {
      rows.apply(call.results, array_at, call.updates, update_at);
      combined += run_length_;
      if (combined >= kCombinedAtOnce) {
        core::pass(call.checkpoint);
        combined = 0;
      }
      size_t d = outer_.size();
      for (; d > 0; --d) {
        array_at += outer_array_[d - 1];
        update_at += outer_update_[d - 1];
        if (++index[d - 1] < outer_[d - 1]) break;
        array_at -= outer_array_[d - 1] * outer_[d - 1];
        update_at -= outer_update_[d - 1] * outer_[d - 1];
        index[d - 1] = 0;
      }
      if (d == 0) break;
    }
  }
}

void Scatter::copy_range(const ScatterCall& call, int64_t begin, int64_t end) const {
  for (size_t k = 0; k < elem_sizes_.size(); ++k) {
    if (call.results[k] == call.sources[k]) continue;
    const int64_t last = end * elem_sizes_[k];
    for (int64_t at = begin * elem_sizes_[k]; at < last; at += kCopiedAtOnce) {
      core::pass(call.checkpoint);
      std::memcpy(call.results[k] + at, call.sources[k] + at, static_cast<size_t>(std::min(kCopiedAtOnce, last - at)));
    }
  }
}

void Scatter::run_whole(const ScatterCall& call) const {
  copy_range(call, 0, array_elements_);
  if (is_empty_) return;
  if (lines_) return lines_->run({call.results[0], call.indices, call.updates[0], call.shifts, call.checkpoint});
  IndexRun run;
  Rows rows(*this);
  const int64_t tuples = table_.count();
  for (int64_t tuple = 0; tuple < tuples; tuple += kTuplesAtOnce) {
    core::pass(call.checkpoint);
    run.read_checked(table_, call.indices, tuple, std::min(kTuplesAtOnce, tuples - tuple), call.shifts);
    combine(RunWindows{run}, rows, call);
  }
}

void Scatter::sort_chunk(const ScatterCall& call, int64_t chunk) const {
  const int64_t first = chunk * chunk_tuples_;
  const int64_t count = std::min(chunk_tuples_, table_.count() - first);
  auto* const ends = reinterpret_cast<uint32_t*>(call.workspace + chunk * chunk_bytes());
  auto* const entries = reinterpret_cast<ElementRun*>(ends + bucket_count_);
  IndexRun run;
  run.read_checked(table_, call.indices, first, count, call.shifts);
  // n / d for n and d of 32 bits, exactly: the upper half of n * (2^64 / d rounded up), d > 1.
  const uint64_t reciprocal = UINT64_MAX / static_cast<uint64_t>(bucket_elements_) + 1;
  std::vector<uint8_t> buckets(static_cast<size_t>(count));
  std::array<uint32_t, kMaxBuckets> next{};
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (run.operand[i] < 0) continue;
    __extension__ using Wide = unsigned __int128;
    buckets[i] = static_cast<uint8_t>(static_cast<Wide>(reciprocal) * static_cast<uint64_t>(run.operand[i]) >> 64);
    ++next[buckets[i]];
  }
  uint32_t begin = 0;
  for (int64_t b = 0; b < bucket_count_; ++b) {
    const uint32_t size = next[static_cast<size_t>(b)];
    next[static_cast<size_t>(b)] = begin;
    begin += size;
    ends[b] = begin;
  }
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (run.operand[i] < 0) continue;
    entries[next[buckets[i]]++] = {static_cast<uint32_t>(run.operand[i]), static_cast<uint32_t>(run.slice[i])};
  }
}

void Scatter::run_bucket(const ScatterCall& call, int64_t bucket) const {
  const int64_t begin = bucket * bucket_elements_;
  copy_range(call, begin, std::min(array_elements_, begin + bucket_elements_));
  std::optional<Rows> rows;
  if (update_ == nullptr) rows.emplace(*this);
  for (int64_t chunk = 0; chunk < chunk_count_; ++chunk) {
    core::pass(call.checkpoint);
    const auto* const ends = reinterpret_cast<const uint32_t*>(call.workspace + chunk * chunk_bytes());
    const auto* const entries = reinterpret_cast<const ElementRun*>(ends + bucket_count_);
    const uint32_t from = bucket == 0 ? 0 : ends[bucket - 1];
    const std::span<const ElementRun> windows{entries + from, entries + ends[bucket]};
    if (update_ != nullptr)
      update_windows(windows, call);
    else
      combine(EntryWindows{windows}, *rows, call);
  }
}

void Scatter::update_windows(std::span<const ElementRun> windows, const ScatterCall& call) const {
  const auto at_once = static_cast<size_t>(std::max<int64_t>(1, kUpdatedAtOnce / run_length_));
  for (size_t first = 0; first < windows.size(); first += at_once) {
    const std::span<const ElementRun> some = windows.subspan(first, std::min(at_once, windows.size() - first));
    update_({.array = call.results[0],
             .updates = call.updates[0],
             .runs = some.data(),
             .count = static_cast<int64_t>(some.size()),
             .run = run_length_});
    core::pass(call.checkpoint);
  }
}

void Scatter::run_part(const ScatterCall& call, int64_t part) const {
  std::byte* sums = call.results[0];
  if (part == 0) {
    copy_range(call, 0, array_elements_);
  } else {
    sums = call.workspace + (part - 1) * part_bytes_;
    std::memset(sums, 0, static_cast<size_t>(part_bytes_));
    if (tensor::is_float(body_.registers[0])) {  // -0 is what changes no float
      for (int64_t end = elem_sizes_[0]; end <= part_bytes_; end += elem_sizes_[0]) sums[end - 1] = std::byte{0x80};
    }
  }
  const int64_t lines = lines_->line_count();
  lines_->run({sums, call.indices, call.updates[0], call.shifts, call.checkpoint}, lines * part / part_count_,
              lines * (part + 1) / part_count_);
}

void Scatter::add_parts(const ScatterCall& call, int64_t bucket) const {
  const int64_t last = std::min(array_elements_, (bucket + 1) * bucket_elements_);
  for (int64_t begin = bucket * bucket_elements_; begin < last; begin += kAddedAtOnce) {
    std::byte* const sums = call.results[0] + begin * elem_sizes_[0];
    for (int64_t part = 1; part < part_count_; ++part) {
      const std::byte* const operands[2] = {sums, call.workspace + (part - 1) * part_bytes_ + begin * elem_sizes_[0]};
      binary_(operands, sums, std::min(kAddedAtOnce, last - begin));
    }
    core::pass(call.checkpoint);
  }
}

void Scatter::run(const ScatterCall& call) const {
  if (barrier() == 0) {
    if (call.begin < call.end) run_whole(call);
    return;
  }
  for (int64_t work_item = call.begin; work_item < call.end; ++work_item) {
    core::pass(call.checkpoint);
    if (work_item < part_count_) {
      run_part(call, work_item);
    } else if (part_count_ > 0) {
      add_parts(call, work_item - part_count_);
    } else if (work_item < chunk_count_) {
      sort_chunk(call, work_item);
    } else {
      run_bucket(call, work_item - chunk_count_);
    }
  }
}

}  // namespace meshd::kernels
