#include "service/arrays/regions/row_major.h"

#include <algorithm>
#include <span>
#include <vector>

#include "service/arrays/regions/region.h"
#include "service/tensor/dtype.h"

namespace meshd::arrays {

void write_row_major(const tensor::TensorType& type, const std::shared_ptr<const storage::BlobReader>& columns,
                     const std::function<void(std::span<const std::byte>)>& out, int64_t most_in_piece) {
  const int64_t element_bytes = tensor::size_bytes(type.dtype);
  const size_t rank = type.dims.size();
  // A piece has one index of the dimensions before `cut`, some of that, and all of those behind it.
  size_t cut = rank == 0 ? 0 : rank - 1;
  int64_t behind = element_bytes;  // bytes for one index of `cut`
  while (cut > 0 && behind * type.dims[cut] <= most_in_piece) behind *= type.dims[cut--];
  const int64_t rows = std::max<int64_t>(1, most_in_piece / behind);

  // Read from its end, the value is row-major with its dimensions reversed.
  const auto layout = unsharded_layout({type.dims.rbegin(), type.dims.rend()});
  ReadableShards stored;
  stored.blobs.push_back(columns);
  std::vector<std::byte> piece;
  std::vector<std::byte> turned;
  std::vector<Slice> slices = full_slices(type.dims);
  const auto write_piece = [&] {
    GatherReader reader(layout, element_bytes, stored, {slices.rbegin(), slices.rend()});
    piece.resize(static_cast<size_t>(reader.total_bytes()));
    turned.resize(piece.size());
    reader.read(piece);
    to_row_major({type.dtype, slice_dims(slices)}, piece.data(), turned.data());
    out(turned);
  };
  if (rank == 0) return write_piece();
  int64_t leading = 1;
  for (size_t d = 0; d < cut; ++d) leading *= type.dims[d];
  for (int64_t n = 0; n < leading; ++n) {
    const tensor::Dims at = unravel(n, std::span(type.dims).first(cut));
    for (size_t d = 0; d < cut; ++d) slices[d] = {at[d], at[d] + 1, 1};
    for (int64_t row = 0; row < type.dims[cut]; row += rows) {
      slices[cut] = {row, std::min(row + rows, type.dims[cut]), 1};
      write_piece();
    }
  }
}

}  // namespace meshd::arrays
