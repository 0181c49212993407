#include "service/kernels/movement/gather.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/unit/kernels/window_problem.h"

namespace meshd::kernels {
namespace {

using tensor::Dims;
using tensor::DType;

std::vector<std::byte> by_definition(const WindowProblem& problem, const std::vector<std::byte>& operand,
                                     int64_t elem_size) {
  std::vector<std::byte> out(static_cast<size_t>(problem.slice_elements * elem_size));
  visit_elements(
      problem, [](int64_t number, int64_t last) { return std::clamp<int64_t>(number, 0, last); },
      [&](int64_t from, int64_t to) {
        std::memcpy(out.data() + to * elem_size, operand.data() + from * elem_size, static_cast<size_t>(elem_size));
      });
  return out;
}

TEST(gather, random_shapes_match_the_definition) {
  int64_t with_lines = 0;
  for (unsigned seed = 0; seed < 1200; ++seed) {
    Dice dice(seed);
    const auto elem_size = dice.pick<int64_t>({1, 2, 4, 4, 8, 16, 3});
    const WindowProblem problem = random_problem(dice);
    const std::vector<std::byte> operand = dice.bytes(problem.array_elements * elem_size);
    IndexTable merged = problem.table;
    merged.merge_batch();
    const Gather gather(merged, problem.window, problem.slice_strides, problem.array_strides, elem_size);
    const bool has_lines =
        GatherLines::make(merged, problem.window, problem.slice_strides, problem.array_strides, elem_size).has_value();
    with_lines += has_lines ? 1 : 0;
    std::vector<std::byte> got(static_cast<size_t>(problem.slice_elements * elem_size));
    // Work items one by one and backwards: each must stand alone.
    for (int64_t item = gather.work_count(); item-- > 0;)
      gather.run(operand.data(), problem.indices.data(), got.data(), item, item + 1);
    ASSERT_EQ(by_definition(problem, operand, elem_size), got) << "seed " << seed << " lines " << has_lines;
  }
  // Both ways were taken.
  EXPECT_GT(with_lines, 200);
  EXPECT_LT(with_lines, 1000);
}

TEST(gather, large_gathers_are_right_across_work_items) {
  // Elements by one number, rows of five elements, and columns of a matrix.
  struct Case {
    int64_t row_stride;
    Dims window;
    Dims slice_strides;
    Dims array_strides;
    int64_t tuple_stride;
  };
  constexpr int64_t kTuples = 70'001;
  constexpr int64_t kRows = 300;
  constexpr int64_t kElemSize = 4;
  for (const Case& each : {Case{1, {}, {}, {}, 1}, Case{5, {5}, {1}, {1}, 5}, Case{1, {7}, {kTuples}, {kRows}, 1}}) {
    Dice dice(5);
    WindowProblem problem;
    problem.table.batch = {kTuples};
    problem.table.batch_strides = {1};
    problem.table.operand_strides = {0};
    problem.table.slice_strides = {each.tuple_stride};
    problem.table.components = {{kRows - 1, each.row_stride}};
    problem.window = each.window;
    problem.slice_strides = each.slice_strides;
    problem.array_strides = each.array_strides;
    problem.slice_elements = kTuples * tensor::element_count(each.window);
    problem.indices = random_indices(dice, DType::kInt32, kTuples, kRows);
    const std::vector<std::byte> operand = dice.bytes(kRows * 7 * kElemSize);
    const Gather gather(problem.table, problem.window, problem.slice_strides, problem.array_strides, kElemSize);
    std::vector<std::byte> got(static_cast<size_t>(problem.slice_elements * kElemSize));
    EXPECT_GT(gather.work_count(), 2);
    for (int64_t item = 0; item < gather.work_count(); item += 2) {
      gather.run(operand.data(), problem.indices.data(), got.data(), item, std::min(item + 2, gather.work_count()));
    }
    EXPECT_EQ(by_definition(problem, operand, kElemSize), got);
  }
}

}  // namespace
}  // namespace meshd::kernels
