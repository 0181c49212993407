#include "service/kernels/movement/movement.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

namespace meshd::kernels {
namespace {

using tensor::Dims;

std::vector<std::byte> numbered_bytes(int64_t count) {
  std::vector<std::byte> out(static_cast<size_t>(count));
  std::mt19937 random(7);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

// The definition of a strided copy, element by element.
void copy_by_definition(std::byte* dst, const std::byte* src, const Dims& extent, const Dims& dst_strides,
                        const Dims& src_strides, int64_t elem) {
  Dims index(extent.size(), 0);
  for (const int64_t size : extent) {
    if (size == 0) return;
  }
  for (;;) {
    int64_t to = 0;
    int64_t from = 0;
    for (size_t d = 0; d < extent.size(); ++d) {
      to += index[d] * dst_strides[d];
      from += index[d] * src_strides[d];
    }
    std::memcpy(dst + to * elem, src + from * elem, static_cast<size_t>(elem));
    size_t d = extent.size();
    while (d > 0 && ++index[d - 1] == extent[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

void expect_permuted_copy_matches(const Dims& src_dims, const std::vector<int>& permutation, int64_t elem) {
  const Dims src_all = tensor::row_major_strides(src_dims);
  Dims extent;
  Dims src_strides;
  for (const int d : permutation) {
    extent.push_back(src_dims[static_cast<size_t>(d)]);
    src_strides.push_back(src_all[static_cast<size_t>(d)]);
  }
  const Dims dst_strides = tensor::row_major_strides(extent);
  const int64_t bytes = tensor::element_count(extent) * elem;
  const std::vector<std::byte> src = numbered_bytes(bytes);
  std::vector<std::byte> expected(src.size());
  std::vector<std::byte> got(src.size());
  copy_by_definition(expected.data(), src.data(), extent, dst_strides, src_strides, elem);
  const StridedCopy copy(extent, dst_strides, src_strides, elem);
  EXPECT_EQ(copy.byte_count(), bytes);
  // Units one by one and backwards: each must stand alone.
  for (int64_t work_item = copy.work_count(); work_item-- > 0;)
    copy.run(got.data(), src.data(), work_item, work_item + 1);
  EXPECT_EQ(expected, got) << tensor::to_string(src_dims) << " elem " << elem;
}

TEST(strided_copy, transposes_of_all_element_sizes_match_the_definition) {
  for (const int64_t elem : {1, 2, 4, 8, 16, 3}) {
    expect_permuted_copy_matches({64, 64}, {1, 0}, elem);
    expect_permuted_copy_matches({67, 131}, {1, 0}, elem);
    expect_permuted_copy_matches({5, 7}, {1, 0}, elem);
    expect_permuted_copy_matches({300, 3}, {1, 0}, elem);
    expect_permuted_copy_matches({3, 300}, {1, 0}, elem);
    expect_permuted_copy_matches({5, 33, 70}, {2, 0, 1}, elem);
    expect_permuted_copy_matches({5, 33, 70}, {1, 0, 2}, elem);
    expect_permuted_copy_matches({5, 33, 17}, {2, 1, 0}, elem);
    expect_permuted_copy_matches({6, 9, 40, 2}, {2, 0, 1, 3}, elem);
    expect_permuted_copy_matches({6, 9, 40, 2}, {0, 2, 1, 3}, elem);
  }
}

TEST(strided_copy, few_rows_and_few_columns_match_the_definition) {
  for (const int64_t elem : {1, 2, 4, 8, 16, 3}) {
    for (int64_t few = 2; few <= 17; ++few) {
      expect_permuted_copy_matches({few, 333}, {1, 0}, elem);
      expect_permuted_copy_matches({333, few}, {1, 0}, elem);
      expect_permuted_copy_matches({3, few, 77}, {0, 2, 1}, elem);
      expect_permuted_copy_matches({3, 77, few}, {2, 1, 0}, elem);
    }
  }
  expect_permuted_copy_matches({3, 200'000}, {1, 0}, 4);  // several work items
  expect_permuted_copy_matches({200'000, 3}, {1, 0}, 4);
  expect_permuted_copy_matches({100'000, 9}, {1, 0}, 4);
}

TEST(strided_copy, groups_of_few_elements_match_the_definition) {
  for (const int64_t elem : {1, 2, 4, 8, 16}) {
    for (int64_t size = 2; size <= 9; ++size) {
      // Of rows of ten elements: the first, every other one backwards, all backwards into every other one of dst.
      for (const auto& [from, stride, to_row, to_stride] :
           {std::array<int64_t, 4>{0, 1, size, 1}, {9, -1, size, 1}, {9, -1, size + 3, 1}, {0, 1, 2 * size, 2}}) {
        const Dims extent = {150, size};
        const Dims src_strides = {10, stride};
        const Dims dst_strides = {to_row, to_stride};
        const std::vector<std::byte> src = numbered_bytes(1500 * elem);
        std::vector<std::byte> expected(static_cast<size_t>(150 * to_row * elem));
        std::vector<std::byte> got = expected;
        copy_by_definition(expected.data(), src.data() + from * elem, extent, dst_strides, src_strides, elem);
        StridedCopy(extent, dst_strides, src_strides, elem).run(got.data(), src.data() + from * elem);
        ASSERT_EQ(expected, got) << "size " << size << " stride " << stride << " elem " << elem;
      }
      // Dense groups of which each is reversed.
      const std::vector<std::byte> src = numbered_bytes(150 * size * elem);
      std::vector<std::byte> expected(src.size());
      std::vector<std::byte> got(src.size());
      const std::byte* const last = src.data() + (size - 1) * elem;
      copy_by_definition(expected.data(), last, {150, size}, {size, 1}, {size, -1}, elem);
      StridedCopy({{150, size}}, {{size, 1}}, {{size, -1}}, elem).run(got.data(), last);
      ASSERT_EQ(expected, got) << "reversed, size " << size << " elem " << elem;
    }
  }
}

TEST(strided_copy, large_transpose_is_right_across_work_items) { expect_permuted_copy_matches({1031, 777}, {1, 0}, 4); }

TEST(strided_copy, random_strides_match_the_definition) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    const int rank = static_cast<int>(random() % 5);
    const int64_t elem = int64_t{1} << (random() % 5);
    Dims extent;
    for (int d = 0; d < rank; ++d) extent.push_back(static_cast<int64_t>(random() % 9) + (random() % 8 != 0 ? 1 : 0));
    // dst: a larger row-major array walked with steps; src: reversed, broadcast or strided.
    Dims dst_dims = extent;
    Dims src_dims = extent;
    Dims dst_step(extent.size());
    for (size_t d = 0; d < extent.size(); ++d) {
      dst_step[d] = static_cast<int64_t>(random() % 3 == 0 ? random() % 3 + 1 : 1);
      dst_dims[d] = std::max<int64_t>(1, extent[d] * dst_step[d] + static_cast<int64_t>(random() % 2));
      src_dims[d] = std::max<int64_t>(1, extent[d] * 2);
    }
    Dims dst_strides = tensor::row_major_strides(dst_dims);
    Dims src_strides = tensor::row_major_strides(src_dims);
    int64_t src_start = 0;
    for (size_t d = 0; d < extent.size(); ++d) {
      dst_strides[d] *= dst_step[d];
      const auto kind = random() % 5;
      if (kind == 0) src_strides[d] = 0;
      if (kind == 1) src_strides[d] *= 2;
      if (kind == 2 && extent[d] > 0) {
        src_start += src_strides[d] * (extent[d] - 1);
        src_strides[d] = -src_strides[d];
      }
    }
    const std::vector<std::byte> src = numbered_bytes(tensor::element_count(src_dims) * elem);
    std::vector<std::byte> expected(static_cast<size_t>(tensor::element_count(dst_dims) * elem));
    std::vector<std::byte> got = expected;
    copy_by_definition(expected.data(), src.data() + src_start * elem, extent, dst_strides, src_strides, elem);
    StridedCopy(extent, dst_strides, src_strides, elem).run(got.data(), src.data() + src_start * elem);
    ASSERT_EQ(expected, got) << "round " << round << " extent " << tensor::to_string(extent) << " elem " << elem;
  }
}

TEST(strided_copy, reversed_rows_of_all_element_sizes_match_the_definition) {
  for (const int64_t elem : {1, 2, 4, 8, 16}) {
    for (const int64_t size : {2, 3, 4, 5, 7, 16, 33, 1000}) {
      const std::vector<std::byte> source = numbered_bytes(3 * size * elem);
      std::vector<std::byte> got(source.size());
      std::vector<std::byte> expected(source.size());
      const Dims extent = {3, size};
      const Dims dst_strides = {size, 1};
      const Dims src_strides = {size, -1};
      const std::byte* const last = source.data() + (size - 1) * elem;
      copy_by_definition(expected.data(), last, extent, dst_strides, src_strides, elem);
      const StridedCopy copy(extent, dst_strides, src_strides, elem);
      copy.run(got.data(), last, 0, copy.work_count());
      EXPECT_EQ(got, expected) << size << " elements of " << elem << " bytes";
    }
  }
}

TEST(strided_copy, nothing_to_copy_has_no_work_items) {
  const Dims extent = {3, 0};
  const Dims strides = {1, 1};
  EXPECT_EQ(StridedCopy(extent, strides, strides, 4).work_count(), 0);
}

TEST(strided_copy, rank_zero_copies_one_element) {
  const std::vector<std::byte> src = numbered_bytes(4);
  std::vector<std::byte> dst(4);
  StridedCopy({}, {}, {}, 4).run(dst.data(), src.data());
  EXPECT_EQ(src, dst);
}

TEST(copy_block, random_blocks_match_the_definition) {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    const size_t rank = random() % 5;
    const int64_t elem = int64_t{1} << (random() % 5);
    Dims extent(rank);
    Dims dst_dims(rank);
    Dims src_dims(rank);
    Dims dst_start(rank);
    Dims src_start(rank);
    for (size_t d = 0; d < rank; ++d) {
      extent[d] = static_cast<int64_t>(random() % 6) + (random() % 8 != 0 ? 1 : 0);
      const auto place = [&](int64_t& dims, int64_t& start) {
        const int64_t room = random() % 2 == 0 ? 0 : static_cast<int64_t>(random() % 4);
        dims = extent[d] + room;
        start = room == 0 ? 0 : static_cast<int64_t>(random()) % (room + 1);
        start = start < 0 ? 0 : start;
      };
      place(dst_dims[d], dst_start[d]);
      place(src_dims[d], src_start[d]);
    }
    const Dims dst_strides = tensor::row_major_strides(dst_dims);
    const Dims src_strides = tensor::row_major_strides(src_dims);
    int64_t to = 0;
    int64_t from = 0;
    for (size_t d = 0; d < rank; ++d) {
      to += dst_start[d] * dst_strides[d];
      from += src_start[d] * src_strides[d];
    }
    const std::vector<std::byte> src = numbered_bytes(tensor::element_count(src_dims) * elem);
    std::vector<std::byte> expected(static_cast<size_t>(tensor::element_count(dst_dims) * elem));
    std::vector<std::byte> got = expected;
    copy_by_definition(expected.data() + to * elem, src.data() + from * elem, extent, dst_strides, src_strides, elem);
    copy_block(got.data(), dst_dims, dst_start, src.data(), src_dims, src_start, extent, elem);
    ASSERT_EQ(expected, got) << "round " << round;
  }
}

TEST(copy_block, larger_than_the_cache_goes_around_it_and_is_right) {
  const Dims dims = {9000, 1100};
  const Dims start = {0, 3};
  const Dims extent = {9000, 1050};
  const std::vector<std::byte> src = numbered_bytes(9000 * 1100 * 4);
  std::vector<std::byte> dst(src.size());
  copy_block(dst.data(), dims, start, src.data(), dims, start, extent, 4);
  for (const int64_t row : {0, 1, 4500, 8999}) {
    EXPECT_EQ(0, std::memcmp(dst.data() + (row * 1100 + 3) * 4, src.data() + (row * 1100 + 3) * 4, 1050 * 4));
    EXPECT_EQ(std::byte{0}, dst[static_cast<size_t>(row * 1100 * 4)]);
  }
}

TEST(fill_elements, every_size) {
  for (const int64_t elem : {1, 2, 3, 4, 8, 16}) {
    const std::vector<std::byte> element = numbered_bytes(elem);
    std::vector<std::byte> out(static_cast<size_t>(elem * 37));
    fill_elements(out.data(), element.data(), 37, elem);
    for (int64_t i = 0; i < 37; ++i)
      ASSERT_EQ(0, std::memcmp(out.data() + i * elem, element.data(), static_cast<size_t>(elem)));
  }
}

}  // namespace
}  // namespace meshd::kernels
