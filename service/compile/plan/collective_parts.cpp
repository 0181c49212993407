#include "service/compile/plan/collective_parts.h"

#include <algorithm>

namespace meshd::compile {
namespace {

// Smaller results are not worth the second round of messages.
constexpr int64_t kLeastBytes = int64_t{1} << 20;

}  // namespace

bool has_parts(const Collective& collective, int64_t shard) {
  const auto& sources = collective.sources[static_cast<size_t>(shard)];
  return collective.item_bytes > 0 && !sources.empty() && sources.front().bytes >= kLeastBytes;
}

// Bytes of the result, in one piece: l, for l lacking. In parts: l / p for p processes, and p - 1 for the result.
bool is_made_in_parts(const Collective& collective, int64_t shard, int64_t process_count, int64_t lacking) {
  return has_parts(collective, shard) && process_count > 1 && lacking >= process_count;
}

CollectivePart part_of(const Collective& collective, int64_t shard, int64_t number, int64_t process_count) {
  const int64_t items = collective.work_items[static_cast<size_t>(shard)];
  const int64_t bytes = collective.sources[static_cast<size_t>(shard)].front().bytes;
  CollectivePart out;
  out.begin_item = items * number / process_count;
  out.end_item = items * (number + 1) / process_count;
  out.begin_byte = std::min(bytes, out.begin_item * collective.item_bytes);
  out.end_byte = std::min(bytes, out.end_item * collective.item_bytes);
  return out;
}

}  // namespace meshd::compile
