// A folder of entries that may be lost: what is kept, what leaves, what is not believed.
#include "storage/entry_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/fault_plan.h"
#include "tests/support/temp_folder.h"
#include "tests/support/watched_file_system.h"

namespace meshd::storage {
namespace {

using testing::TempFolder;

class EntryFolderTest : public ::testing::Test {
 protected:
  std::unique_ptr<EntryFolder> open(int64_t most_bytes = 4096) {
    return std::make_unique<EntryFolder>(
        *files_, folder_.path() + "/entries", most_bytes,
        [this](const std::string& name, const std::string& reason) { removed_.push_back(name + ": " + reason); });
  }
  std::string file(const std::string& name) const { return folder_.path() + "/entries/" + name + ".entry"; }
  std::string content(const std::string& name) const {
    std::ifstream in(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& name, const std::string& bytes) const {
    std::ofstream(file(name), std::ios::binary | std::ios::trunc) << bytes;
  }

  TempFolder folder_{TempFolder::Where::kMemory};
  const std::unique_ptr<FileSystem> files_ = real_file_system();
  std::vector<std::string> removed_;
};

TEST_F(EntryFolderTest, entries_and_their_order_outlive_the_process) {
  {
    const auto entries = open();
    EXPECT_TRUE(entries->write("a", "first"));
    EXPECT_TRUE(entries->write("b", std::string("\0second", 7)));
    EXPECT_TRUE(entries->write("c", ""));
    EXPECT_TRUE(entries->use("a"));
    EXPECT_FALSE(entries->use("d"));
  }
  const auto entries = open();
  EXPECT_EQ(entries->names(), (std::vector<std::string>{"a", "c", "b"}));
  EXPECT_EQ(entries->read("a"), "first");
  EXPECT_EQ(entries->read("b"), std::string("\0second", 7));
  EXPECT_EQ(entries->read("c"), "");
  EXPECT_EQ(entries->read("d"), std::nullopt);
  EXPECT_EQ(entries->stats().entries, 3);
  EXPECT_EQ(entries->stats().bytes, 3 * 32 + 12);
  EXPECT_TRUE(entries->write("a", "other"));
  EXPECT_EQ(entries->read("a"), "other");
  EXPECT_EQ(entries->stats().entries, 3);
  EXPECT_TRUE(removed_.empty());
}

TEST_F(EntryFolderTest, the_least_recently_used_leaves_first) {
  auto entries = open(1000);
  const std::string body(168, 'x');
  for (const char* const name : {"a", "b", "c", "d", "e"}) EXPECT_TRUE(entries->write(name, body));
  EXPECT_TRUE(entries->use("a"));
  EXPECT_TRUE(entries->write("f", body));
  EXPECT_EQ(entries->names(), (std::vector<std::string>{"f", "a", "e", "d", "c"}));
  EXPECT_FALSE(std::filesystem::exists(file("b")));
  EXPECT_FALSE(entries->write("large", std::string(219, 'x'))) << "more than a quarter";
  EXPECT_TRUE(entries->write("large", std::string(218, 'x')));
  EXPECT_FALSE(entries->write("../a", "x"));
  EXPECT_FALSE(entries->write("order", "x"));
  entries.reset();
  EXPECT_EQ(open(450)->names(), (std::vector<std::string>{"large", "f"})) << "a smaller bound holds for what is there";
}

TEST_F(EntryFolderTest, damaged_and_foreign_entries_are_misses) {
  const auto fresh = [&] {
    std::filesystem::remove_all(folder_.path() + "/entries");
    const auto entries = open();
    EXPECT_TRUE(entries->write("a", "some bytes"));
    EXPECT_TRUE(entries->write("b", "some others"));
  };
  fresh();
  const std::string whole = content("a");
  std::vector<std::string> damaged;
  for (size_t length = 0; length < whole.size(); ++length) damaged.push_back(whole.substr(0, length));
  for (size_t at = 0; at < whole.size(); ++at) {
    damaged.push_back(whole);
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ 0x20);
  }
  damaged.push_back(whole + "x");
  damaged.push_back(content("b"));
  damaged.push_back(std::string(5000, 'x'));
  for (const std::string& bytes : damaged) {
    fresh();
    put("a", bytes);
    removed_.clear();
    const auto entries = open(8000);
    EXPECT_EQ(entries->read("a"), std::nullopt);
    EXPECT_EQ(removed_.size(), 1U);
    EXPECT_FALSE(std::filesystem::exists(file("a")));
    EXPECT_EQ(entries->read("a"), std::nullopt);
    EXPECT_EQ(removed_.size(), 1U);
    EXPECT_EQ(entries->stats().unusable, 1);
    EXPECT_EQ(entries->read("b"), "some others");
  }
}

TEST_F(EntryFolderTest, a_damaged_order_is_no_order) {
  {
    const auto entries = open();
    EXPECT_TRUE(entries->write("a", "1"));
    EXPECT_TRUE(entries->write("b", "2"));
  }
  put("order", "what is this");
  const auto entries = open();
  EXPECT_EQ(entries->stats().entries, 2);
  EXPECT_EQ(entries->read("a"), "1");
}

TEST_F(EntryFolderTest, what_ended_the_process_is_not_tried_again) {
  {
    const auto entries = open();
    EXPECT_TRUE(entries->write("a", "1"));
    EXPECT_TRUE(entries->write("b", "2"));
    EXPECT_TRUE(entries->suspend("a"));
    EXPECT_TRUE(entries->suspend("b"));
    entries->resume("b");
    EXPECT_FALSE(entries->suspend("c"));
  }
  const auto entries = open();
  EXPECT_EQ(entries->names(), std::vector<std::string>{"b"});
  EXPECT_EQ(removed_, std::vector<std::string>{"a: the process ended while it was used"});
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path() + "/entries"), {}), 2)
      << "b and the order";
}

TEST_F(EntryFolderTest, without_bytes_nothing_is_kept) {
  EXPECT_TRUE(open()->write("a", "1"));
  const auto entries = open(0);
  EXPECT_FALSE(entries->is_on());
  EXPECT_FALSE(entries->write("b", "2"));
  EXPECT_TRUE(entries->names().empty());
  EXPECT_FALSE(std::filesystem::exists(file("a")));
  EXPECT_FALSE(std::filesystem::exists(file("order")));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path() + "/entries"));
}

TEST_F(EntryFolderTest, a_folder_that_cannot_be_made_has_no_entries) {
  EntryFolder entries(*files_, folder_.path() + "/no/such/folder", 4096, nullptr);
  EXPECT_FALSE(entries.write("a", "1"));
  EXPECT_TRUE(entries.names().empty());
  EXPECT_EQ(entries.read("a"), std::nullopt);
}

TEST_F(EntryFolderTest, no_failing_call_throws_or_leaves_a_wrong_entry) {
  testing::FaultPlan plan;
  testing::WatchedFileSystem files(plan);
  const std::string path = folder_.path() + "/entries";
  int faults = 0;
  for (const auto kind : {testing::FaultKind::kIo, testing::FaultKind::kNoSpace}) {
    for (const auto reach : {testing::FaultReach::kOnce, testing::FaultReach::kSticky}) {
      for (int64_t nth = 1;; ++nth) {
        std::filesystem::remove_all(path);
        EXPECT_TRUE(open()->write("a", "as it was"));
        plan.arm(nth, reach, kind);
        {
          EntryFolder entries(files, path, 4096, nullptr);
          if (entries.write("a", "as it is")) {
            EXPECT_TRUE(entries.use("a"));
          }
          entries.write("b", "another");
          if (entries.suspend("b")) entries.resume("b");
          const auto read = entries.read("a");
          EXPECT_TRUE(!read || *read == "as it was" || *read == "as it is");
          entries.remove("b", "not wanted");
          entries.save_order();
        }
        const bool is_over = !plan.fired();
        plan.disarm();
        if (is_over) break;
        ++faults;
        const auto read = open()->read("a");
        EXPECT_TRUE(!read || *read == "as it was" || *read == "as it is");
      }
    }
  }
  EXPECT_GT(faults, 40);
}

}  // namespace
}  // namespace meshd::storage
