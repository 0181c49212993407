#include "service/arrays/array.h"

namespace meshd::arrays {

Array::Array(ArrayInfo info, std::shared_ptr<const sharding::Layout> layout)
    : info_(std::move(info)), layout_(std::move(layout)) {}

int64_t Array::shard_bytes() const {
  return layout_->shard_count * tensor::byte_count({info_.type.dtype, layout_->shard_dims});
}

}  // namespace meshd::arrays
