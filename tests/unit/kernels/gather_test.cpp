#include "service/kernels/movement/gather.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "service/kernels/movement/index_value.h"

namespace meshd::kernels {
namespace {

using tensor::Dims;
using tensor::DType;

/// A gather of random shape, with indices of which some are out of bounds.
struct GatherProblem {
  IndexTable table;
  Dims window;
  Dims result_strides;
  Dims operand_strides;
  int64_t elem_size = 1;
  std::vector<std::byte> operand;
  std::vector<std::byte> indices;
  int64_t result_elements = 1;
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

std::vector<std::byte> random_indices(Dice& dice, DType dtype, int64_t count, int64_t size) {
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

/// Operand dims are batching, indexed or both-sided windows at random; result dims are tuples' and windows' in any
/// order.
GatherProblem random_problem(unsigned seed) {
  Dice dice(seed);
  GatherProblem problem;
  problem.elem_size = dice.pick<int64_t>({1, 2, 4, 4, 8, 16, 3});
  IndexTable& table = problem.table;
  table.dtype = dice.pick({DType::kInt32, DType::kInt64, DType::kUint32, DType::kUint64, DType::kInt8, DType::kUint16});
  const int64_t batch_rank = dice.upto(3);
  const int64_t components = dice.upto(2);
  const int64_t whole = dice.upto(2);
  for (int64_t d = 0; d < batch_rank; ++d) table.batch.push_back(1 + dice.upto(dice.pick<int64_t>({3, 12, 40})));
  if (batch_rank == 1 && dice.upto(2) == 0) table.batch[0] = 500 + dice.upto(1500);
  // The operand: batching dims, indexed dims and whole ones, in random order.
  Dims operand;
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
    operand.push_back(kind.batch >= 0   ? table.batch[static_cast<size_t>(kind.batch)]
                      : kind.is_indexed ? kind.window + dice.upto(20)
                                        : kind.window);
  }
  const Dims strides = tensor::row_major_strides(operand);
  table.operand_strides.assign(table.batch.size(), 0);
  for (size_t d = 0; d < kinds.size(); ++d) {
    if (kinds[d].batch >= 0) {
      table.operand_strides[static_cast<size_t>(kinds[d].batch)] = strides[d];
      continue;
    }
    if (kinds[d].is_indexed) table.components.push_back({operand[d] - kinds[d].window, strides[d]});
    problem.window.push_back(kinds[d].window);
    problem.operand_strides.push_back(strides[d]);
  }
  // Tuples last, or their numbers first.
  const auto numbers = static_cast<int64_t>(table.components.size());
  const int64_t tuples = tensor::element_count(table.batch);
  const bool is_tuple_last = dice.upto(1) == 0;
  table.batch_strides = tensor::row_major_strides(table.batch);
  table.component_stride = is_tuple_last ? 1 : tuples;
  for (int64_t& stride : table.batch_strides) stride *= is_tuple_last ? std::max<int64_t>(numbers, 1) : 1;
  problem.indices = random_indices(dice, table.dtype, std::max<int64_t>(1, tuples * numbers), 20);
  // The result's dims: those of the window keep their order, as those of the batch do.
  Dims result;
  std::vector<int64_t*> places;
  problem.result_strides.assign(problem.window.size(), 0);
  table.slice_strides.assign(table.batch.size(), 0);
  size_t next_batch = 0;
  size_t next_window = 0;
  while (next_batch < table.batch.size() || next_window < problem.window.size()) {
    const bool takes_batch =
        next_window == problem.window.size() || (next_batch < table.batch.size() && dice.upto(1) == 0);
    result.push_back(takes_batch ? table.batch[next_batch] : problem.window[next_window]);
    places.push_back(takes_batch ? &table.slice_strides[next_batch++] : &problem.result_strides[next_window++]);
  }
  const Dims result_strides = tensor::row_major_strides(result);
  for (size_t d = 0; d < places.size(); ++d) *places[d] = result_strides[d];
  problem.result_elements = tensor::element_count(result);
  problem.operand = dice.bytes(tensor::element_count(operand) * problem.elem_size);
  return problem;
}

/// The definition, element by element.
std::vector<std::byte> gathered(const GatherProblem& problem) {
  const IndexTable& table = problem.table;
  std::vector<std::byte> out(static_cast<size_t>(problem.result_elements * problem.elem_size));
  const auto next = [](Dims& index, const Dims& extent) {
    size_t d = extent.size();
    while (d > 0 && ++index[d - 1] == extent[d - 1]) index[--d] = 0;
    return d > 0;
  };
  const auto dot = [](const Dims& a, const Dims& b) {
    int64_t sum = 0;
    for (size_t d = 0; d < a.size(); ++d) sum += a[d] * b[d];
    return sum;
  };
  Dims tuple(table.batch.size(), 0);
  do {
    int64_t from = dot(tuple, table.operand_strides);
    for (size_t c = 0; c < table.components.size(); ++c) {
      const int64_t at = dot(tuple, table.batch_strides) + static_cast<int64_t>(c) * table.component_stride;
      const int64_t number = read_index(problem.indices.data() + at * tensor::size_bytes(table.dtype), table.dtype);
      from += std::clamp<int64_t>(number, 0, table.components[c].last_start) * table.components[c].stride;
    }
    Dims place(problem.window.size(), 0);
    do {
      std::memcpy(
          out.data() + (dot(tuple, table.slice_strides) + dot(place, problem.result_strides)) * problem.elem_size,
          problem.operand.data() + (from + dot(place, problem.operand_strides)) * problem.elem_size,
          static_cast<size_t>(problem.elem_size));
    } while (next(place, problem.window));
  } while (next(tuple, table.batch));
  return out;
}

TEST(gather, random_shapes_match_the_definition) {
  int64_t with_lines = 0;
  for (unsigned seed = 0; seed < 1200; ++seed) {
    const GatherProblem problem = random_problem(seed);
    IndexTable merged = problem.table;
    merged.merge_batch();
    const Gather gather(merged, problem.window, problem.result_strides, problem.operand_strides, problem.elem_size);
    const bool has_lines =
        GatherLines::make(merged, problem.window, problem.result_strides, problem.operand_strides, problem.elem_size)
            .has_value();
    with_lines += has_lines ? 1 : 0;
    std::vector<std::byte> got(static_cast<size_t>(problem.result_elements * problem.elem_size));
    // Work items one by one and backwards: each must stand alone.
    for (int64_t item = gather.work_count(); item-- > 0;)
      gather.run(problem.operand.data(), problem.indices.data(), got.data(), item, item + 1);
    ASSERT_EQ(gathered(problem), got) << "seed " << seed << " lines " << has_lines;
  }
  // Both ways were taken.
  EXPECT_GT(with_lines, 200);
  EXPECT_LT(with_lines, 1000);
}

TEST(gather, large_gathers_are_right_across_work_items) {
  // Elements by one number, rows of five elements, and columns of a matrix.
  struct Case {
    int64_t operand_stride;
    Dims window;
    Dims result_strides;
    Dims operand_strides;
    int64_t slice_stride;
  };
  constexpr int64_t kTuples = 70'001;
  constexpr int64_t kRows = 300;
  for (const Case& each : {Case{1, {}, {}, {}, 1}, Case{5, {5}, {1}, {1}, 5}, Case{1, {7}, {kTuples}, {kRows}, 1}}) {
    Dice dice(5);
    GatherProblem problem;
    problem.elem_size = 4;
    problem.table.batch = {kTuples};
    problem.table.batch_strides = {1};
    problem.table.operand_strides = {0};
    problem.table.slice_strides = {each.slice_stride};
    problem.table.components = {{kRows - 1, each.operand_stride}};
    problem.window = each.window;
    problem.result_strides = each.result_strides;
    problem.operand_strides = each.operand_strides;
    problem.result_elements = kTuples * tensor::element_count(each.window);
    problem.operand = dice.bytes(kRows * 7 * problem.elem_size);
    problem.indices = random_indices(dice, DType::kInt32, kTuples, kRows);
    const Gather gather(problem.table, problem.window, problem.result_strides, problem.operand_strides,
                        problem.elem_size);
    std::vector<std::byte> got(static_cast<size_t>(problem.result_elements * problem.elem_size));
    EXPECT_GT(gather.work_count(), 2);
    for (int64_t item = 0; item < gather.work_count(); item += 2) {
      gather.run(problem.operand.data(), problem.indices.data(), got.data(), item,
                 std::min(item + 2, gather.work_count()));
    }
    EXPECT_EQ(gathered(problem), got);
  }
}

}  // namespace
}  // namespace meshd::kernels
