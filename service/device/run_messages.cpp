// The messages of a run to other ranks. Every rank executes the same steps in the same order, so the number of the
// collective (`visit_`), the shard that needs a block and the block's index in its list of sources identify a message
// on both sides without negotiation.
#include <algorithm>
#include <iterator>
#include <set>

#include "service/device/run_impl.h"
#include "service/kernels/movement/movement.h"

namespace meshd::device {
namespace {

constexpr int64_t kNoCollective = -1;  // MessageKey::source of messages that are no collective's
// Blocks of so many bytes are sent from where they are. Smaller ones are copied: that takes less time than waiting
// until they are sent.
constexpr int64_t kKeptBytes = int64_t{1} << 16;

}  // namespace

std::vector<int> RunImpl::other_ranks() const {
  std::set<int> ranks(owners_.rank_of_device.begin(), owners_.rank_of_device.end());
  ranks.erase(owners_.rank);
  return {ranks.begin(), ranks.end()};
}

void RunImpl::expect(int peer, const MessageKey& key, std::span<std::byte> bytes, tensor::BufferRef memory) {
  exchange_->missing.fetch_add(1, std::memory_order_relaxed);
  ++stats_.messages;
  // The completion owns the memory and the run. What `missing` belongs to cannot change while a message is missing.
  engine_.options.transport->expect(peer, key, bytes,
                                    [self = shared_from_this(), memory = std::move(memory), exchange = exchange_] {
                                      if (exchange->missing.fetch_sub(1, std::memory_order_acq_rel) == 1)
                                        self->resume();
                                    });
}

tensor::BufferRef RunImpl::memory_of(size_t pointer) const {
  const int32_t owner = owner_of_pointer_[pointer];
  return owner >= 0 ? held_[static_cast<size_t>(owner)] : arena_;
}

// What a message is sent from, for as long as that takes: the step that sends it is not over before, so that the run
// neither overwrites it nor ends and takes back what its peer has not fetched.
std::shared_ptr<const void> RunImpl::keep_until_sent(const std::byte* bytes, tensor::BufferRef memory) {
  exchange_->missing.fetch_add(1, std::memory_order_relaxed);
  // A run that fails meanwhile leaves its memory to the message.
  return {bytes, [self = shared_from_this(), exchange = exchange_, plan = request_.plan,
                  memory = std::move(memory)](const void*) {
            if (exchange->missing.fetch_sub(1, std::memory_order_acq_rel) == 1) self->resume();
          }};
}

// True when nothing is missing and everything is sent; else the last message resumes the run.
bool RunImpl::all_arrived() { return exchange_->missing.load(std::memory_order_acquire) == 0; }

std::vector<int> RunImpl::ranks_of_parts(const compile::Step& step, int64_t shard) const {
  const compile::Collective& collective = step.collective->get(plan());
  // The search for the first NaN looks at whole shards.
  if (!compile::has_parts(collective, shard) || request_.nonfinite.is_on()) return {};
  const ActiveSet& active = *frames_.back().active;
  std::set<int> ranks(owners_.rank_of_device.begin(), owners_.rank_of_device.end());
  std::erase_if(ranks, [&](int rank) { return !active.is_held_by(rank, step.table, shard); });
  int64_t lacking = 0;
  for (const compile::CollectiveSource& source : collective.sources[static_cast<size_t>(shard)]) {
    for (const int rank : ranks) lacking += active.is_held_by(rank, source.table, source.shard) ? 0 : 1;
  }
  if (!compile::is_made_in_parts(collective, shard, static_cast<int64_t>(ranks.size()), lacking)) return {};
  return {ranks.begin(), ranks.end()};
}

compile::CollectivePart RunImpl::part_of(const compile::Step& step, int64_t shard, int rank) const {
  const std::vector<int>& ranks = exchange_->in_parts.at(shard);
  const auto number = std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin();
  return compile::part_of(step.collective->get(plan()), shard, number, static_cast<int64_t>(ranks.size()));
}

bool RunImpl::exchange_sources(const compile::Step& step) {
  if (exchange_ != nullptr) return all_arrived();
  exchange_ = std::make_shared<Exchange>();
  exchange_->visit = visit_++;
  ActiveSet& active = *frames_.back().active;
  const compile::Collective& collective = step.collective->get(plan());
  const std::vector<int> others = other_ranks();
  for (int64_t shard = 0; shard < plan().table(step.table).count(); ++shard) {
    const auto& sources = collective.sources[static_cast<size_t>(shard)];
    std::vector<int> ranks = ranks_of_parts(step, shard);
    if (!ranks.empty()) exchange_->in_parts[shard] = std::move(ranks);
    for (size_t i = 0; i < sources.size(); ++i) {
      const compile::CollectiveSource& source = sources[i];
      const int64_t holder = active.holder(source.table, source.shard);
      if (holder < 0) continue;  // not needed: check_members ended that run
      const MessageKey key{request_.key, exchange_->visit, shard, static_cast<int64_t>(i)};
      if (rank_of(holder) != owners_.rank) {
        const bool is_wanted = active.is_held_by(owners_.rank, step.table, shard);
        if (!is_wanted || active.is_held_by(owners_.rank, source.table, source.shard)) continue;
        int64_t bytes = source.bytes;
        if (exchange_->in_parts.count(shard) > 0) {
          const compile::CollectivePart part = part_of(step, shard, owners_.rank);
          bytes = part.end_byte - part.begin_byte;
        }
        tensor::BufferRef buffer = engine_.buffers->allocate(bytes);
        stats_.allocated_bytes += bytes;
        exchange_->received[{shard, static_cast<int64_t>(i)}] = buffer;
        expect(rank_of(holder), key, buffer->bytes().first(static_cast<size_t>(bytes)), buffer);
        continue;
      }
      std::vector<int> peers;
      std::copy_if(others.begin(), others.end(), std::back_inserter(peers), [&](int peer) {
        return active.is_held_by(peer, step.table, shard) && !active.is_held_by(peer, source.table, source.shard);
      });
      if (!peers.empty()) post_source(step, key, peers);
    }
  }
  exchange_->missing.fetch_sub(1, std::memory_order_acq_rel);
  return all_arrived();
}

void RunImpl::post_source(const compile::Step& step, const MessageKey& key, const std::vector<int>& peers) {
  Transport& transport = *engine_.options.transport;
  const compile::Collective& collective = step.collective->get(plan());
  const compile::CollectiveSource& source =
      collective.sources[static_cast<size_t>(key.shard)][static_cast<size_t>(key.source)];
  const compile::SlotRef& operand = step.operands[static_cast<size_t>(source.operand)];
  const auto pointer = static_cast<size_t>(operand.first + source.slot_shard);
  const std::byte* bytes = pointers_[pointer];
  std::shared_ptr<const void> keep;
  tensor::BufferRef packed;
  if (source.block >= 0) {
    const compile::CollectiveBlock& block = collective.blocks[static_cast<size_t>(source.block)];
    packed = engine_.buffers->allocate(source.bytes);
    const tensor::Dims zeros(block.extent.size(), 0);
    kernels::copy_block(packed->data(), block.extent, zeros, bytes,
                        collective.source_dims[static_cast<size_t>(source.operand)], block.start, block.extent,
                        collective.element_bytes);
    bytes = packed->data();
    keep = packed;
  }
  if (source.bytes >= kKeptBytes) keep = keep_until_sent(bytes, packed != nullptr ? packed : memory_of(pointer));
  const bool in_parts = exchange_->in_parts.count(key.shard) > 0;
  for (const int peer : peers) {
    std::span<const std::byte> block{bytes, static_cast<size_t>(source.bytes)};
    if (in_parts) {
      const compile::CollectivePart part = part_of(step, key.shard, peer);
      block = {bytes + part.begin_byte, bytes + part.end_byte};
    }
    if (keep == nullptr) {
      transport.post(peer, key, block);
    } else {
      transport.post_kept(peer, key, block, keep);
    }
    ++stats_.messages;
  }
}

RunImpl::Next RunImpl::gather_parts(const compile::Step& step) {
  if (!exchange_->is_gather) {
    auto gather = std::make_shared<Exchange>();
    gather->in_parts = std::move(exchange_->in_parts);
    gather->is_made = gather->is_gather = true;
    gather->visit = visit_++;
    exchange_ = std::move(gather);
    for (const auto& [shard, ranks] : exchange_->in_parts) {
      if (std::find(ranks.begin(), ranks.end(), owners_.rank) == ranks.end()) continue;
      const compile::SlotRef& result = step.results.front();
      const auto at = static_cast<size_t>(result.first + plan().slot_shard(result, shard));
      const std::shared_ptr<const void> keep = keep_until_sent(pointers_[at], memory_of(at));
      const compile::CollectivePart ours = part_of(step, shard, owners_.rank);
      for (const int peer : ranks) {
        if (peer == owners_.rank) continue;
        engine_.options.transport->post_kept(peer, {request_.key, exchange_->visit, shard, owners_.rank},
                                             {pointers_[at] + ours.begin_byte, pointers_[at] + ours.end_byte}, keep);
        ++stats_.messages;
        const compile::CollectivePart theirs = part_of(step, shard, peer);
        expect(peer, {request_.key, exchange_->visit, shard, peer},
               {pointers_[at] + theirs.begin_byte, pointers_[at] + theirs.end_byte}, memory_of(at));
      }
    }
    exchange_->missing.fetch_sub(1, std::memory_order_acq_rel);
  }
  if (!all_arrived()) return Next::kSuspended;
  exchange_.reset();
  return step_done(step);
}

bool RunImpl::exchange_bytes(compile::TableId table, const compile::SlotRef& ref, int64_t bytes,
                             std::vector<std::vector<std::byte>>& out) {
  ActiveSet& active = *frames_.back().active;
  const int64_t count = plan().table(table).count();
  if (exchange_ == nullptr) {
    exchange_ = std::make_shared<Exchange>();
    exchange_->visit = visit_++;
    for (int64_t shard = 0; shard < count; ++shard) {
      const int64_t holder = active.holder(table, shard);
      if (holder < 0) continue;
      const MessageKey key{request_.key, exchange_->visit, shard, kNoCollective};
      tensor::BufferRef& buffer = exchange_->received[{shard, kNoCollective}];
      buffer = engine_.buffers->allocate(bytes);
      if (rank_of(holder) != owners_.rank) {
        expect(rank_of(holder), key, buffer->bytes(), buffer);
        continue;
      }
      std::copy_n(pointer(ref, shard), bytes, buffer->data());
      for (const int peer : other_ranks()) {
        engine_.options.transport->post(peer, key, buffer->bytes());
        ++stats_.messages;
      }
    }
    exchange_->missing.fetch_sub(1, std::memory_order_acq_rel);
  }
  if (!all_arrived()) return false;
  out.assign(static_cast<size_t>(count), {});
  for (const auto& [key, buffer] : exchange_->received) {
    out[static_cast<size_t>(key.first)].assign(buffer->data(), buffer->data() + bytes);
  }
  exchange_.reset();
  return true;
}

// Results of an effect that happened once, on `holder`'s rank, reach the others.
bool RunImpl::exchange_results(const compile::Step& step, int64_t holder) {
  const int from = rank_of(holder);
  ActiveSet& active = *frames_.back().active;
  if (exchange_ == nullptr) {
    exchange_ = std::make_shared<Exchange>();
    exchange_->visit = visit_++;
    for (size_t i = 0; i < step.results.size(); ++i) {
      const int64_t bytes = plan().slot(step.results[i].slot).bytes;
      const MessageKey key{request_.key, exchange_->visit, static_cast<int64_t>(i), kNoCollective};
      if (from != owners_.rank) {
        if (active.shards(step.table).empty()) continue;
        tensor::BufferRef& buffer = exchange_->received[{static_cast<int64_t>(i), kNoCollective}];
        buffer = engine_.buffers->allocate(bytes);
        expect(from, key, buffer->bytes(), buffer);
        continue;
      }
      for (const int peer : other_ranks()) {
        if (!active.is_held_by(peer, step.table, 0)) continue;
        engine_.options.transport->post(peer, key, {pointer(step.results[i], 0), static_cast<size_t>(bytes)});
        ++stats_.messages;
      }
    }
    exchange_->missing.fetch_sub(1, std::memory_order_acq_rel);
  }
  if (!all_arrived()) return false;
  for (const auto& [key, buffer] : exchange_->received) {
    std::copy_n(buffer->data(), buffer->size(), pointer(step.results[static_cast<size_t>(key.first)], 0));
  }
  exchange_.reset();
  return true;
}

}  // namespace meshd::device
