// A real small disk that fills up under work: refusals say disk_full, reads go on, work goes on without a restart once
// there is space, and nothing acknowledged is lost. Needs the right to mount; is skipped without it.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "service/core/error.h"
#include "service/core/ids.h"
#include "tests/recovery/kill_history.h"
#include "tests/recovery/kill_protocol.h"
#include "tests/recovery/store_worker.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using namespace storage;

constexpr int kRounds = 5;
constexpr int kSteps = 4000;

class SmallDisk {
 public:
  explicit SmallDisk(const std::string& folder)
      : folder_(folder), mounted_(::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=24m") == 0) {}
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) ::umount(folder_.c_str());
  }
  [[nodiscard]] bool mounted() const { return mounted_; }

 private:
  std::string folder_;
  bool mounted_;
};

TEST(FullDisk, refusals_are_clean_and_work_goes_on_when_there_is_space) {
  const TempFolder parent;
  const SmallDisk disk(parent.path());
  if (!disk.mounted()) {
    ASSERT_EQ(std::getenv("MESHD_LONG"), nullptr) << "mounting is not allowed here";
    GTEST_SKIP() << "mounting is not allowed here";
  }
  const std::string ballast = parent.path() + "/ballast";
  const std::string data = parent.path() + "/data";
  KillHistory history;
  int refusals = 0;
  {
    OpenStore store(data);
    open_kill_session(*store);
    for (int round = 0; round < kRounds; ++round) {
      // What is left for this round differs, so that the disk fills up at other places.
      std::ofstream(ballast, std::ios::binary) << std::string(static_cast<size_t>((4 + round * 2) << 20), 'b');
      StoreWorker worker(*store, std::to_string(round), [&](const std::string& line) { history.note(line); });
      int refused_here = 0;
      for (int step = 0; step < kSteps && refused_here < 10; ++step) {
        const std::string word = error_word([&] { worker.step(); });
        if (word.empty()) continue;
        ASSERT_EQ(word, "disk_full");
        ++refused_here;
        const auto session = store->catalog().read([](Reader& reader) { return reader.session(kKillSession); });
        ASSERT_TRUE(session) << "reads stopped";
      }
      refusals += refused_here;
      std::filesystem::remove(ballast);
      store->catalog().write([](Transaction& t) { t.insert_session(session_row(core::random_hex(8))); });
      EXPECT_TRUE(store->health().writable);
      ASSERT_EQ(store.fatal(), "");
    }
  }
  EXPECT_GE(refusals, 10);
  OpenStore store(data);
  EXPECT_TRUE(store->recovery().was_clean);
  const std::vector<std::string> wrong = history.check(*store);
  EXPECT_TRUE(wrong.empty()) << wrong.size() << " rules broken, first: " << wrong.front();
}

// Arrays until the disk is full, and rows until the log's last page is.
class FillsDisk {
 public:
  explicit FillsDisk(OpenStore& store) : store_(store) {}

  void add_array(const std::string& id, int64_t bytes) {
    const CommittedBlob blob = put_blob(store_->blobs(), id + ".v1.s0", std::string(static_cast<size_t>(bytes), 'x'));
    store_->catalog().write([&](Transaction& t) {
      t.insert_array(array_row(id));
      t.put_shard({id, 0, blob.ref});
    });
  }

  void fill() {
    const auto until_full = [](const std::function<void()>& step) {
      std::string word;
      while (word.empty()) word = error_word(step);
      EXPECT_EQ(word, "disk_full");
    };
    until_full([&] { add_array("arr_" + std::to_string(++number_), 64 << 10); });
    until_full([&] {
      store_->catalog().write(
          [&](Transaction& t) { t.insert_session(session_row("ses_" + std::to_string(++number_))); });
    });
  }

 private:
  OpenStore& store_;
  int64_t number_ = 0;
};

TEST(FullDisk, what_frees_space_is_committed_when_there_is_none) {
  const TempFolder parent;
  const SmallDisk disk(parent.path());
  if (!disk.mounted()) {
    ASSERT_EQ(std::getenv("MESHD_LONG"), nullptr) << "mounting is not allowed here";
    GTEST_SKIP() << "mounting is not allowed here";
  }
  OpenStore store(parent.path() + "/data");
  FillsDisk disk_filler(store);
  // Twice: the space that a delete has used is held back again.
  for (const auto& [id, bytes] : {std::pair("arr_a", 12 << 20), std::pair("arr_b", 4 << 20)}) {
    disk_filler.add_array(id, bytes);
    disk_filler.fill();
    store->catalog().write([id = id](Transaction& t) { t.delete_array(id); }, Space::kFrees);
    EXPECT_FALSE(store->catalog().read([id = id](Reader& r) { return r.array(id); }));
    EXPECT_EQ(store->collect_garbage(), 1);
    // 4 MiB are held back where 8 are free, which the larger array leaves.
    EXPECT_EQ(std::filesystem::exists(parent.path() + "/data/reserve"), bytes > 8 << 20);
  }
  EXPECT_EQ(store.fatal(), "");
}

}  // namespace
}  // namespace meshd::testing
