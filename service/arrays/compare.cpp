#include "service/arrays/compare.h"

#include <cstring>

#include "service/arrays/regions/region.h"

namespace meshd::arrays {
namespace {

constexpr size_t kComparedPiece = size_t{1} << 20;

GatherReader reader_of(ArrayStore& store, const ArrayRef& array) {
  const tensor::TensorType& type = array->info().type;
  return {{array, &array->layout()}, tensor::size_bytes(type.dtype), store.open(array).shards, full_slices(type.dims)};
}

}  // namespace

bool are_alike(ArrayStore& store, const ArrayRef& left, const ArrayRef& right, Likeness likeness) {
  if (left->info().type != right->info().type) return false;
  if (likeness == Likeness::kPlacement) return sharding::is_equivalent(left->info().sharding, right->info().sharding);
  GatherReader left_reader = reader_of(store, left), right_reader = reader_of(store, right);
  std::vector<std::byte> a(kComparedPiece), b(kComparedPiece);
  while (const size_t got = left_reader.read(a)) {
    if (right_reader.read(std::span(b).first(got)) != got || std::memcmp(a.data(), b.data(), got) != 0) return false;
  }
  return true;
}

}  // namespace meshd::arrays
