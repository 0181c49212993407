// Random gathers and scatters, as the kernels take them, for tests against the definitions.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "service/kernels/movement/index_table.h"
#include "service/kernels/movement/index_value.h"

namespace meshd::kernels {

/// A gather or scatter of random shape, with indices of which some are out of bounds.
struct WindowProblem {
  IndexTable table;
  tensor::Dims window;
  tensor::Dims slice_strides;
  tensor::Dims array_strides;
  std::vector<std::byte> indices;
  int64_t array_elements = 1;
  int64_t slice_elements = 1;
};

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  int64_t upto(int64_t most) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(most + 1)); }
  template <typename T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[upto(static_cast<int64_t>(list.size()) - 1)];
  }
  std::vector<std::byte> bytes(int64_t count) {
    std::vector<std::byte> out(static_cast<size_t>(count));
    for (std::byte& b : out) b = static_cast<std::byte>(random_());
    return out;
  }
  std::mt19937& engine() { return random_; }

 private:
  std::mt19937 random_;
};

inline std::vector<std::byte> random_indices(Dice& dice, tensor::DType dtype, int64_t count, int64_t size) {
  std::vector<std::byte> out(static_cast<size_t>(count * tensor::size_bytes(dtype)));
  with_index_type(dtype, [&]<typename T>(T) {
    for (int64_t i = 0; i < count; ++i) {
      T value = static_cast<T>(dice.upto(size + 4) - 2);
      if (dice.upto(30) == 0) value = std::numeric_limits<T>::max();
      if (dice.upto(30) == 0) value = std::numeric_limits<T>::min();
      std::memcpy(out.data() + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
    }
  });
  return out;
}

/// The array's dims are batching, indexed or both-sided windows at random; dims of the slices are tuples' and windows'
/// in any order.
inline WindowProblem random_problem(Dice& dice) {
  WindowProblem problem;
  IndexTable& table = problem.table;
  table.dtype = dice.pick({tensor::DType::kInt32, tensor::DType::kInt64, tensor::DType::kUint32, tensor::DType::kUint64,
                           tensor::DType::kInt8, tensor::DType::kUint16});
  const int64_t batch_rank = dice.upto(3);
  const int64_t components = dice.upto(2);
  const int64_t whole = dice.upto(2);
  for (int64_t d = 0; d < batch_rank; ++d) table.batch.push_back(1 + dice.upto(dice.pick<int64_t>({3, 12, 40})));
  if (batch_rank == 1 && dice.upto(2) == 0) table.batch[0] = 500 + dice.upto(1500);
  // The array: batching dims, indexed dims and whole ones, in random order.
  tensor::Dims array;
  struct Kind {
    int64_t batch = -1;
    int64_t window = 1;
    bool is_indexed = false;
  };
  std::vector<Kind> kinds;
  for (int64_t d = 0; d < batch_rank; ++d) {
    if (dice.upto(2) == 0) kinds.push_back({.batch = d});
  }
  for (int64_t c = 0; c < components; ++c)
    kinds.push_back({.window = dice.pick<int64_t>({1, 1, 2}), .is_indexed = true});
  for (int64_t w = 0; w < whole; ++w) kinds.push_back({.window = 1 + dice.upto(8)});
  std::shuffle(kinds.begin(), kinds.end(), dice.engine());
  for (const Kind& kind : kinds) {
    array.push_back(kind.batch >= 0   ? table.batch[static_cast<size_t>(kind.batch)]
                    : kind.is_indexed ? kind.window + dice.upto(20)
                                      : kind.window);
  }
  const tensor::Dims strides = tensor::row_major_strides(array);
  table.operand_strides.assign(table.batch.size(), 0);
  for (size_t d = 0; d < kinds.size(); ++d) {
    if (kinds[d].batch >= 0) {
      table.operand_strides[static_cast<size_t>(kinds[d].batch)] = strides[d];
      continue;
    }
    if (kinds[d].is_indexed) table.components.push_back({array[d] - kinds[d].window, strides[d]});
    problem.window.push_back(kinds[d].window);
    problem.array_strides.push_back(strides[d]);
  }
  // Tuples last, or their numbers first.
  const auto numbers = static_cast<int64_t>(table.components.size());
  const int64_t tuples = tensor::element_count(table.batch);
  const bool is_tuple_last = dice.upto(1) == 0;
  table.batch_strides = tensor::row_major_strides(table.batch);
  table.component_stride = is_tuple_last ? 1 : tuples;
  for (int64_t& stride : table.batch_strides) stride *= is_tuple_last ? std::max<int64_t>(numbers, 1) : 1;
  problem.indices = random_indices(dice, table.dtype, std::max<int64_t>(1, tuples * numbers), 20);
  // The slices' dims: those of the window keep their order, as those of the batch do.
  tensor::Dims slices;
  std::vector<int64_t*> places;
  problem.slice_strides.assign(problem.window.size(), 0);
  table.slice_strides.assign(table.batch.size(), 0);
  size_t next_batch = 0;
  size_t next_window = 0;
  while (next_batch < table.batch.size() || next_window < problem.window.size()) {
    const bool takes_batch =
        next_window == problem.window.size() || (next_batch < table.batch.size() && dice.upto(1) == 0);
    slices.push_back(takes_batch ? table.batch[next_batch] : problem.window[next_window]);
    places.push_back(takes_batch ? &table.slice_strides[next_batch++] : &problem.slice_strides[next_window++]);
  }
  const tensor::Dims slice_strides = tensor::row_major_strides(slices);
  for (size_t d = 0; d < places.size(); ++d) *places[d] = slice_strides[d];
  problem.slice_elements = tensor::element_count(slices);
  problem.array_elements = tensor::element_count(array);
  return problem;
}

/// Calls visit(place in the array, place in the slices) for the elements of all windows, tuples in row-major order. The
/// tuple's numbers go through start(number, last_start); a negative answer skips the window.
template <typename Start, typename Visit>
void visit_elements(const WindowProblem& problem, Start&& start, Visit&& visit) {
  const IndexTable& table = problem.table;
  const auto next = [](tensor::Dims& index, const tensor::Dims& extent) {
    size_t d = extent.size();
    while (d > 0 && ++index[d - 1] == extent[d - 1]) index[--d] = 0;
    return d > 0;
  };
  const auto dot = [](const tensor::Dims& a, const tensor::Dims& b) {
    int64_t sum = 0;
    for (size_t d = 0; d < a.size(); ++d) sum += a[d] * b[d];
    return sum;
  };
  tensor::Dims tuple(table.batch.size(), 0);
  do {
    int64_t array_at = dot(tuple, table.operand_strides);
    bool is_inside = true;
    for (size_t c = 0; c < table.components.size(); ++c) {
      const int64_t at = dot(tuple, table.batch_strides) + static_cast<int64_t>(c) * table.component_stride;
      const int64_t number = read_index(problem.indices.data() + at * tensor::size_bytes(table.dtype), table.dtype);
      const int64_t from = start(number, table.components[c].last_start);
      is_inside = is_inside && from >= 0;
      if (is_inside) array_at += from * table.components[c].stride;
    }
    tensor::Dims place(problem.window.size(), 0);
    do {
      if (is_inside) {
        visit(array_at + dot(place, problem.array_strides),
              dot(tuple, table.slice_strides) + dot(place, problem.slice_strides));
      }
    } while (next(place, problem.window));
  } while (next(tuple, table.batch));
}

}  // namespace meshd::kernels
