// Slices as NumPy reads them, and row-major bytes in and out of shards, against a loop over the elements.
#include "service/arrays/regions/region.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "service/arrays/regions/merge.h"
#include "service/core/error.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using arrays::ShardBuffers;
using arrays::Slice;

std::string text_of(const std::vector<Slice>& slices) {
  std::string out;
  for (const Slice& slice : slices)
    out += (out.empty() ? "" : " ") + std::to_string(slice.start) + ":" + std::to_string(slice.stop) + ":" +
           std::to_string(slice.step) + "=" + std::to_string(slice.count());
  return out;
}

TEST(Slices, are_read_as_numpy_reads_them) {
  const tensor::Dims dims = {10, 4};
  const auto read = [&](std::string_view text) { return text_of(arrays::parse_slices(text, dims)); };
  EXPECT_EQ(read(""), "0:10:1=10 0:4:1=4");
  EXPECT_EQ(read("2:5"), "2:5:1=3 0:4:1=4") << "missing dimensions are whole";
  EXPECT_EQ(read("-3:,1:-1"), "7:10:1=3 1:3:1=2") << "negative numbers count from the end";
  EXPECT_EQ(read("::3,3"), "0:10:3=4 3:4:1=1") << "a single number keeps its dimension";
  EXPECT_EQ(arrays::slice_dims(arrays::parse_slices("5:2", dims)), (tensor::Dims{0, 4}));
  EXPECT_EQ(arrays::slice_dims(arrays::parse_slices("0:99", dims)), (tensor::Dims{10, 4})) << "beyond the end";
  for (const std::string_view wrong : {"1:2,3:4,5:6", "a", "::0", "::-1", "10", "-11", "1:2:3:4", ","})
    EXPECT_EQ(error_word([&] { arrays::parse_slices(wrong, dims); }), "invalid_query") << wrong;
}

/// int32 of these dims over mesh x=2, y=2 with the axes of each dimension, holding 0, 1, 2, ... in row-major order.
struct Sharded {
  Sharded(const tensor::Dims& dims, const std::vector<std::vector<int>>& axes) {
    const auto mesh = std::make_shared<const mesh::Mesh>(mesh::Mesh{{{"x", 2}, {"y", 2}}, {0, 1, 2, 3}, {}});
    auto sharding = sharding::fully_replicated("", mesh, static_cast<int64_t>(dims.size()));
    for (size_t d = 0; d < axes.size(); ++d) {
      for (const int axis : axes[d]) sharding.dims[d].axes.push_back({axis, 1, 0});
    }
    layout = std::make_shared<const sharding::Layout>(sharding::make_layout(dims, sharding));
    const auto pool = tensor::BufferPool::create(0);
    for (int64_t s = 0; s < layout->shard_count; ++s) {
      shards.push_back(pool->allocate(tensor::element_count(layout->shard_dims) * 4));
      std::memset(shards.back()->data(), 0x7f, static_cast<size_t>(shards.back()->size()));
    }
  }
  std::shared_ptr<const sharding::Layout> layout;
  ShardBuffers shards;
};

std::vector<int32_t> counting(int64_t count) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(static_cast<int32_t>(i));
  return out;
}

void scatter(Sharded& array, const std::vector<int32_t>& values, size_t piece) {
  arrays::ScatterWriter writer(*array.layout, 4, array.shards);
  const auto bytes = std::as_bytes(std::span(values));
  for (size_t at = 0; at < bytes.size(); at += piece)
    writer.write(bytes.subspan(at, std::min(piece, bytes.size() - at)));
  EXPECT_EQ(writer.remaining(), 0);
  EXPECT_TRUE(writer.destination().empty());
  EXPECT_EQ(error_word([&] { writer.write(bytes.first(1)); }), "malformed_body");
}

std::vector<int32_t> gather(const Sharded& array, const std::vector<Slice>& slices, size_t piece, int64_t from = 0) {
  arrays::GatherReader reader(array.layout, 4, array.shards, slices);
  reader.seek(from);
  std::vector<std::byte> bytes;
  std::vector<std::byte> buffer(piece);
  while (const size_t got = reader.read(buffer))
    bytes.insert(bytes.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(got));
  std::vector<int32_t> out(bytes.size() / 4);
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

TEST(Region, shards_hold_their_blocks_of_what_was_written) {
  Sharded array({4, 6}, {{0}, {1}});
  scatter(array, counting(24), 7);
  ASSERT_EQ(array.shards.size(), 4U);
  // Block (1, 1): rows 2 and 3, columns 3 to 5.
  int32_t block[6];
  std::memcpy(block, array.shards[3]->data(), sizeof block);
  EXPECT_EQ((std::vector<int32_t>(block, block + 6)), (std::vector<int32_t>{15, 16, 17, 21, 22, 23}));
}

TEST(Region, slices_of_even_and_uneven_arrays_are_those_of_a_loop) {
  for (const auto& axes :
       std::vector<std::vector<std::vector<int>>>{{{}, {}}, {{0}, {}}, {{}, {0, 1}}, {{1}, {0}}, {{0, 1}, {}}}) {
    for (const tensor::Dims& dims : {tensor::Dims{8, 4}, tensor::Dims{5, 7}, tensor::Dims{3, 1}, tensor::Dims{1, 2}}) {
      Sharded array(dims, axes);
      scatter(array, counting(dims[0] * dims[1]), 5);
      for (const std::string_view text : {"", "1:", "::2,1:", "0:1,::3", "-1,-1", ":0"}) {
        if (text == "1:" && dims[0] == 1) continue;
        const auto slices = arrays::parse_slices(text, dims);
        std::vector<int32_t> expected;
        for (int64_t r = slices[0].start; r < slices[0].stop; r += slices[0].step) {
          for (int64_t c = slices[1].start; c < slices[1].stop; c += slices[1].step)
            expected.push_back(static_cast<int32_t>(r * dims[1] + c));
        }
        for (const size_t piece : {3U, 4U, 1000U})
          EXPECT_EQ(gather(array, slices, piece), expected)
              << dims[0] << "x" << dims[1] << " [" << text << "] in " << piece;
      }
    }
  }
}

TEST(Region, reading_starts_at_any_byte) {
  Sharded array({5, 7}, {{0}, {1}});
  scatter(array, counting(35), 1000);
  const auto slices = arrays::parse_slices("1:4,::2", std::vector<int64_t>{5, 7});
  EXPECT_EQ(gather(array, slices, 1000, 4 * 5), (std::vector<int32_t>{16, 18, 20, 21, 23, 25, 27}));
}

TEST(Region, pieces_are_the_shards_own_memory) {
  Sharded array({4, 6}, {{0}, {}});
  scatter(array, counting(24), 1000);
  const arrays::GatherReader reader(array.layout, 4, array.shards, arrays::full_slices(std::vector<int64_t>{4, 6}));
  const auto pieces = reader.pieces(8);
  ASSERT_TRUE(pieces.has_value());
  ASSERT_EQ(pieces->size(), 2U);
  EXPECT_EQ(pieces->at(0).data(), array.shards[0]->data());
  EXPECT_EQ(pieces->at(1).data(), array.shards[1]->data());
  EXPECT_EQ(pieces->at(0).size(), 48U);
  EXPECT_FALSE(reader.pieces(1).has_value());
}

TEST(Region, written_region_changes_its_elements_and_no_others) {
  Sharded array({5, 7}, {{0}, {1}});
  scatter(array, counting(35), 1000);
  const auto slices = arrays::parse_slices("1:4:2,2:5", std::vector<int64_t>{5, 7});
  const std::vector<int32_t> values = {-1, -2, -3, -4, -5, -6};
  std::set<int64_t> written;
  arrays::write_region(*array.layout, 4, slices, arrays::memory_source(std::as_bytes(std::span(values))),
                       [&](int64_t shard) {
                         written.insert(shard);
                         return array.shards[static_cast<size_t>(shard)]->data();
                       });
  std::vector<int32_t> expected = counting(35);
  for (int i = 0; i < 3; ++i) {
    expected[static_cast<size_t>(1 * 7 + 2 + i)] = -1 - i;
    expected[static_cast<size_t>(3 * 7 + 2 + i)] = -4 - i;
  }
  EXPECT_EQ(gather(array, arrays::full_slices(std::vector<int64_t>{5, 7}), 1000), expected);
  // Rows 1 and 3 lie in both halves of x; columns 2 to 4 in both halves of y (4 and 3 columns).
  EXPECT_EQ(written, (std::set<int64_t>{0, 1, 2, 3}));
}

TEST(Region, padding_is_read_as_zeros) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    tensor::Dims dims, actual;
    for (int d = 0; d < 1 + round % 3; ++d) {
      dims.push_back(1 + static_cast<int64_t>(random() % 5));
      actual.push_back(static_cast<int64_t>(random()) % (dims.back() + 1));
    }
    Sharded array(dims, {});
    const auto numbers = counting(tensor::element_count(dims));
    std::memcpy(array.shards[0]->data(), numbers.data(), numbers.size() * 4);
    std::vector<int32_t> expected = numbers;
    for (size_t i = 0; i < expected.size(); ++i) {
      auto rest = static_cast<int64_t>(i);
      for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) {
        if (rest % dims[d] >= actual[d]) expected[i] = 0;
      }
    }
    arrays::GatherReader reader(arrays::unsharded_layout(dims), 4, array.shards, arrays::full_slices(dims));
    reader.zero_beyond(actual);
    EXPECT_FALSE(reader.pieces(1000).has_value());
    const int64_t skipped = static_cast<int64_t>(random()) % reader.total_bytes();
    reader.seek(skipped);
    std::vector<std::byte> read(static_cast<size_t>(reader.total_bytes() - skipped));
    for (size_t at = 0; at < read.size();)
      at += reader.read(std::span(read).subspan(at).first(std::min<size_t>(3, read.size() - at)));
    EXPECT_EQ(0, std::memcmp(read.data(), reinterpret_cast<const std::byte*>(expected.data()) + skipped, read.size()));
  }
}

TEST(Region, shards_merged_with_a_region_are_those_that_it_is_written_to) {
  std::mt19937 random(2);
  const std::vector<std::vector<std::vector<int>>> axes = {{{0}, {}}, {{}, {0, 1}}, {{1}, {0}}, {{}, {}}, {{0, 1}, {}}};
  for (int round = 0; round < 300; ++round) {
    const tensor::Dims dims = {1 + static_cast<int64_t>(random() % 9), 1 + static_cast<int64_t>(random() % 9)};
    Sharded array(dims, axes[static_cast<size_t>(round) % axes.size()]);
    scatter(array, counting(tensor::element_count(dims)), 1000);
    std::vector<Slice> slices;
    for (const int64_t dim : dims) {
      const int64_t start = static_cast<int64_t>(random()) % (dim + 1);
      const int64_t step = random() % 5 == 0 ? INT64_MAX : 1 + static_cast<int64_t>(random() % 3);
      slices.push_back({start, start + static_cast<int64_t>(random()) % (dim - start + 1), step});
    }
    std::vector<int32_t> values = counting(tensor::element_count(arrays::slice_dims(slices)));
    for (int32_t& value : values) value = -1 - value;
    const arrays::ByteSource region = arrays::memory_source(std::as_bytes(std::span(values)));
    std::set<int64_t> merged;
    std::vector<std::vector<std::byte>> found(array.shards.size());
    for (int64_t s = 0; s < array.layout->shard_count; ++s) {
      const auto part = arrays::region_in_shard(*array.layout, slices, s);
      if (!part) continue;
      merged.insert(s);
      auto& bytes = found[static_cast<size_t>(s)];
      arrays::merge_shard(
          *array.layout, 4, slices, *part,
          arrays::memory_source(std::as_const(*array.shards[static_cast<size_t>(s)]).bytes()), region,
          [&](std::span<const std::byte> piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
    }
    std::set<int64_t> written;
    arrays::write_region(*array.layout, 4, slices, region, [&](int64_t shard) {
      written.insert(shard);
      return array.shards[static_cast<size_t>(shard)]->data();
    });
    EXPECT_EQ(merged, written);
    for (const int64_t s : written) {
      const auto bytes = std::as_const(*array.shards[static_cast<size_t>(s)]).bytes();
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), found[static_cast<size_t>(s)].begin(),
                             found[static_cast<size_t>(s)].end()))
          << round;
    }
  }
}

TEST(ToRowMajor, first_index_of_columns_is_fastest) {
  const int8_t columns[] = {1, 4, 2, 5, 3, 6};
  int8_t rows[6] = {};
  arrays::to_row_major({tensor::DType::kInt8, {2, 3}}, reinterpret_cast<const std::byte*>(columns),
                       reinterpret_cast<std::byte*>(rows));
  EXPECT_EQ(std::vector<int8_t>(rows, rows + 6), (std::vector<int8_t>{1, 2, 3, 4, 5, 6}));
}

}  // namespace
}  // namespace meshd::testing
