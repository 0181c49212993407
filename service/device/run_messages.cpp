// The messages of a run to other ranks. Every rank executes the same steps in the same order, so the number of the
// collective (`visit_`), the shard that needs a block and the block's index in its list of sources identify a message
// on both sides without negotiation.
#include <algorithm>
#include <set>

#include "service/device/run_impl.h"
#include "service/kernels/movement/movement.h"

namespace meshd::device {
namespace {

constexpr int64_t kNoCollective = -1;  // MessageKey::source of messages that are no collective's

}  // namespace

std::vector<int> RunImpl::other_ranks() const {
  std::set<int> ranks(owners_.rank_of_device.begin(), owners_.rank_of_device.end());
  ranks.erase(owners_.rank);
  return {ranks.begin(), ranks.end()};
}

void RunImpl::expect(int peer, const MessageKey& key, const tensor::BufferRef& buffer) {
  exchange_->missing.fetch_add(1, std::memory_order_relaxed);
  ++stats_.messages;
  // The completion owns the buffer and the run. What `missing` belongs to cannot change while a message is missing.
  engine_.options.transport->expect(peer, key, buffer->bytes(),
                                    [self = shared_from_this(), buffer, exchange = exchange_] {
                                      if (exchange->missing.fetch_sub(1, std::memory_order_acq_rel) == 1)
                                        self->resume();
                                    });
}

// True when nothing is missing; else the last message resumes the run.
bool RunImpl::all_arrived() { return exchange_->missing.load(std::memory_order_acquire) == 0; }

bool RunImpl::exchange_sources(const compile::Step& step) {
  if (exchange_ != nullptr) return all_arrived();
  exchange_ = std::make_shared<Exchange>();
  exchange_->visit = visit_++;
  ActiveSet& active = *frames_.back().active;
  const compile::Collective& collective = step.collective->get(plan());
  const std::vector<int> others = other_ranks();
  Transport& transport = *engine_.options.transport;
  std::vector<std::byte> packed;
  for (int64_t shard = 0; shard < plan().table(step.table).count(); ++shard) {
    const auto& sources = collective.sources[static_cast<size_t>(shard)];
    for (size_t i = 0; i < sources.size(); ++i) {
      const compile::CollectiveSource& source = sources[i];
      const int64_t holder = active.holder(source.table, source.shard);
      if (holder < 0) continue;  // not needed: check_members ended that run
      const MessageKey key{request_.key, exchange_->visit, shard, static_cast<int64_t>(i)};
      if (rank_of(holder) != owners_.rank) {
        const bool is_wanted = active.is_held_by(owners_.rank, step.table, shard);
        if (!is_wanted || active.is_held_by(owners_.rank, source.table, source.shard)) continue;
        tensor::BufferRef buffer = engine_.buffers->allocate(source.bytes);
        stats_.allocated_bytes += source.bytes;
        exchange_->received[{shard, static_cast<int64_t>(i)}] = buffer;
        expect(rank_of(holder), key, buffer);
        continue;
      }
      for (const int peer : others) {
        if (!active.is_held_by(peer, step.table, shard) || active.is_held_by(peer, source.table, source.shard))
          continue;
        const compile::SlotRef& operand = step.operands[static_cast<size_t>(source.operand)];
        const std::byte* bytes = pointers_[static_cast<size_t>(operand.first + source.slot_shard)];
        if (!source.extent.empty()) {
          packed.resize(static_cast<size_t>(source.bytes));
          const tensor::Dims zeros(source.extent.size(), 0);
          kernels::copy_block(packed.data(), source.extent, zeros, bytes,
                              collective.source_dims[static_cast<size_t>(source.operand)], source.start, source.extent,
                              collective.element_bytes);
          bytes = packed.data();
        }
        transport.post(peer, key, {bytes, static_cast<size_t>(source.bytes)});
        ++stats_.messages;
      }
    }
  }
  exchange_->missing.fetch_sub(1, std::memory_order_acq_rel);
  return all_arrived();
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
        expect(rank_of(holder), key, buffer);
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
        expect(from, key, buffer);
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
