#include "api/codecs/files/zarr_metadata.h"

#include <gtest/gtest.h>

#include "service/core/error.h"
#include "service/tensor/buffer.h"

namespace meshd::testing {
namespace {

std::string group_with(const std::string& values) {
  return R"({"zarr_format": 3, "node_type": "group", "attributes": {"a": [)" + values + "]}}";
}

// A document of two bytes a value takes many times as much once it is read.
TEST(ZarrMetadata, reading_holds_the_memory_that_it_takes) {
  const auto pool = tensor::BufferPool::create(0);
  std::string lists = "[]";
  for (int i = 0; i < 100'000; ++i) lists += ",[]";
  const auto ledger = core::MemoryLedger::create(int64_t{5} << 20);  // requests: 4 MiB
  core::MemoryReservation memory(ledger, core::MemoryAccount::kRequests);
  EXPECT_THROW(api::read_zarr3(group_with(lists), *pool, &memory), core::Error);
  EXPECT_THROW(api::read_zarr2_attributes(group_with(lists), &memory), core::Error);
  core::MemoryReservation enough(ledger, core::MemoryAccount::kRequests);
  memory = {};
  EXPECT_EQ(api::read_zarr3(group_with("1"), *pool, &enough).kind, zarr::NodeKind::kGroup);
  EXPECT_GT(enough.bytes(), 0);
}

}  // namespace
}  // namespace meshd::testing
