// Uploads that come in pieces: parts, offsets, the right to append, quotas, expiry, what a restart finds.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "service/core/error.h"
#include "service/uploads/append.h"
#include "service/uploads/upload_reader.h"
#include "tests/support/eventually.h"
#include "tests/support/fault_plan.h"
#include "tests/support/storage_fixture.h"
#include "tests/support/watched_vfs.h"

namespace meshd::uploads {
namespace {

using testing::as_bytes;
using testing::OpenStore;
using testing::TempFolder;

/// Whose steady time a test moves.
class HandClock final : public core::Clock {
 public:
  [[nodiscard]] core::SteadyTime steady() const override { return core::SteadyTime(now); }
  [[nodiscard]] core::WallTime wall() const override { return core::WallTime(std::chrono::microseconds(1)); }
  std::chrono::seconds now{1000};
};

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const core::Error& error) {
    return std::string(error.code().word());
  }
  return {};
}

class Uploads : public ::testing::Test {
 protected:
  static UploadLimits limits() {
    UploadLimits out;
    out.most_bytes = 100;
    out.part_bytes = 8;
    out.most_open = 2;
    out.max_age = std::chrono::seconds(60);
    out.most_parts = 20;
    out.most_done = 3;
    return out;
  }
  static quotas::Limits quota() {
    quotas::Limits out;
    out.array_bytes = 60;
    return out;
  }
  void open() {
    uploads_.reset();
    store_.reset();
    store_ = std::make_unique<OpenStore>(folder_.path(), vfs_.name());
    ledger_ = std::make_unique<quotas::ArrayLedger>(quota());
    uploads_ = std::make_unique<UploadStore>(**store_, *ledger_, clock_, limits());
  }
  void SetUp() override { open(); }

  void send(const UploadRef& upload, std::string_view bytes, Sealing sealing = Sealing::kAsTheyFill) {
    Append append(*uploads_, upload, waiter_, sealing);
    append.write(as_bytes(bytes));
    append.seal();
  }
  std::string read(const UploadRef& upload, size_t piece) {
    UploadReader reader(*uploads_, *upload);
    std::string out(200, '\0');
    size_t filled = 0;
    while (const size_t count = reader.read_some(std::as_writable_bytes(std::span(out)).subspan(filled, piece)))
      filled += count;
    EXPECT_EQ(reader.total_bytes(), static_cast<int64_t>(filled));
    out.resize(filled);
    return out;
  }
  int64_t offset(const UploadRef& upload) { return uploads_->status(upload).offset; }

  TempFolder folder_{TempFolder::Where::kMemory};
  testing::FaultPlan faults_;
  const testing::WatchedVfs vfs_{faults_};
  HandClock clock_;
  core::WaiterRef waiter_ = std::make_shared<core::ThreadWaiter>();
  std::unique_ptr<OpenStore> store_;
  std::unique_ptr<quotas::ArrayLedger> ledger_;
  std::unique_ptr<UploadStore> uploads_;
};

TEST_F(Uploads, bytes_are_those_that_came_whatever_the_parts_and_the_reads) {
  const UploadRef upload = uploads_->create("ann", "request", std::nullopt);
  std::string sent;
  for (const std::string_view piece : {"a", "", "bcdefgh", "ijklmnopqrstuvwxyz012345", "6", "789"}) {
    send(upload, piece);
    sent += piece;
    EXPECT_EQ(offset(upload), static_cast<int64_t>(sent.size()));
  }
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{64}}) EXPECT_EQ(read(upload, piece), sent);
}

TEST_F(Uploads, what_was_not_sealed_is_sealed_at_the_end_unless_all_or_nothing_counts) {
  const UploadRef upload = uploads_->create("ann", "", std::nullopt);
  {
    Append append(*uploads_, upload, waiter_);
    append.write(as_bytes("0123456789"));
    EXPECT_EQ(offset(upload), 8) << "a full part counts at once";
  }
  EXPECT_EQ(offset(upload), 10);
  {
    Append append(*uploads_, upload, waiter_, Sealing::kAtTheEnd);
    append.write(as_bytes("0123456789abcdef0123"));
  }
  EXPECT_EQ(offset(upload), 10);
  send(upload, "0123456789abcdef0123", Sealing::kAtTheEnd);
  EXPECT_EQ(read(upload, 64), "01234567890123456789abcdef0123");
}

TEST_F(Uploads, one_request_appends_and_others_may_end_it) {
  const UploadRef upload = uploads_->create("ann", "", std::nullopt);
  auto first = std::make_unique<Append>(*uploads_, upload, waiter_);
  EXPECT_EQ(refusal([&] { Append(*uploads_, upload, waiter_); }), "upload_in_use");
  const auto other = std::make_shared<core::ThreadWaiter>();
  EXPECT_EQ(refusal([&] { uploads_->interrupt(upload, other, clock_.steady()); }), "upload_in_use");
  std::thread ends([&] {
    EXPECT_TRUE(testing::eventually([&] { return waiter_->is_abandoned(); }));
    first.reset();
  });
  uploads_->interrupt(upload, other, clock_.steady() + std::chrono::seconds(10));
  ends.join();
  EXPECT_EQ(refusal([&] { Append(*uploads_, upload, other); }), "");
}

TEST_F(Uploads, who_begins_elsewhere_never_keeps_another_request_from_appending) {
  const UploadRef upload = uploads_->create("ann", "", std::nullopt);
  std::atomic<bool> is_over{false};
  std::thread elsewhere([&] {
    while (!is_over) {
      EXPECT_NE(refusal([&] { Append(*uploads_, upload, waiter_, Sealing::kAsTheyFill, 1 << 20); }), "");
    }
  });
  for (int64_t i = 0; i < 2'000; ++i) Append(*uploads_, upload, waiter_, Sealing::kAsTheyFill, 0);
  is_over = true;
  elsewhere.join();
}

TEST_F(Uploads, lengths_agree) {
  const UploadRef upload = uploads_->create("ann", "", 10);
  EXPECT_EQ(refusal([&] { uploads_->set_length(upload, 11); }), "upload_length_mismatch");
  EXPECT_EQ(refusal([&] { send(upload, "01234567890"); }), "upload_length_mismatch");
  send(upload, "0123456789");
  const UploadRef open = uploads_->create("ann", "", std::nullopt);
  send(open, "012");
  EXPECT_EQ(refusal([&] { uploads_->set_length(open, 2); }), "upload_length_mismatch");
  uploads_->set_length(open, 3);
  EXPECT_EQ(refusal([&] { send(open, "4"); }), "upload_length_mismatch");
}

TEST_F(Uploads, are_bounded_in_bytes_number_and_parts) {
  EXPECT_EQ(refusal([&] { uploads_->create("ann", "", 101); }), "body_too_large");
  EXPECT_EQ(refusal([&] { uploads_->create("ann", "", 61); }), "quota_exceeded");
  const UploadRef upload = uploads_->create("ann", "", std::nullopt);
  EXPECT_EQ(refusal([&] { send(upload, std::string(61, 'x')); }), "quota_exceeded");
  static_cast<void>(uploads_->create("ann", "", std::nullopt));
  EXPECT_EQ(refusal([&] { uploads_->create("ann", "", std::nullopt); }), "limit_reached");
  const UploadRef others = uploads_->create("bob", "", std::nullopt);
  for (int i = 0; i < 20; ++i) send(others, "x");
  EXPECT_EQ(refusal([&] { send(others, "x"); }), "limit_reached");
  EXPECT_EQ(refusal([&] { uploads_->find(others->id, "ann"); }), "not_found");
}

TEST_F(Uploads, the_charge_is_held_until_the_request_has_run) {
  const UploadRef upload = uploads_->create("ann", "", 40);
  EXPECT_EQ(ledger_->totals("ann").bytes, 40);
  send(upload, std::string(40, 'x'));
  EXPECT_EQ(ledger_->totals("ann").bytes, 40);
  uploads_->give_charge(upload);
  EXPECT_EQ(ledger_->totals("ann").bytes, 0);
  uploads_->take_charge_back(upload);
  EXPECT_EQ(ledger_->totals("ann").bytes, 40);
  uploads_->finish(upload, "/v1/arrays/a");
  EXPECT_EQ(ledger_->totals("ann").bytes, 0);
  EXPECT_EQ(uploads_->status(upload).result, "/v1/arrays/a");
  EXPECT_EQ(refusal([&] { send(upload, "x"); }), "upload_completed");
  (**store_).collect_garbage();
  EXPECT_TRUE((**store_).blobs().list().empty());
}

TEST_F(Uploads, what_does_not_count_is_not_charged) {
  const UploadRef upload = uploads_->create("ann", "", std::nullopt);
  send(upload, "0123456789");
  {
    Append append(*uploads_, upload, waiter_, Sealing::kAtTheEnd);
    append.write(as_bytes("abcdefghij"));
    EXPECT_EQ(ledger_->totals("ann").bytes, 20);
  }
  EXPECT_EQ(ledger_->totals("ann").bytes, 10);
}

TEST_F(Uploads, a_length_that_could_not_be_stored_was_not_told) {
  const UploadRef upload = uploads_->create("ann", "", std::nullopt);
  send(upload, "0123456789");
  faults_.arm(1, testing::FaultReach::kOnce, testing::FaultKind::kNoSpace, "sql_write");
  EXPECT_EQ(refusal([&] { uploads_->set_length(upload, 30); }), "disk_full");
  faults_.disarm();
  EXPECT_EQ(uploads_->status(upload).length, std::nullopt);
  EXPECT_EQ(ledger_->totals("ann").bytes, 10);
  uploads_->set_length(upload, 20);
  send(upload, "abcdefghij");
  open();
  EXPECT_EQ(uploads_->status(uploads_->find(upload->id, "ann")).length, 20);
}

TEST_F(Uploads, one_whose_end_could_not_be_stored_is_not_done) {
  const UploadRef upload = uploads_->create("ann", "", 10);
  send(upload, "0123456789");
  uploads_->give_charge(upload);
  faults_.arm(1, testing::FaultReach::kSticky, testing::FaultKind::kNoSpace, "sql_write");
  EXPECT_EQ(refusal([&] { uploads_->finish(upload, "/v1/arrays/a"); }), "disk_full");
  faults_.disarm();
  EXPECT_FALSE(uploads_->status(upload).is_done);
  EXPECT_EQ(uploads_->status(upload).result, "");
  uploads_->take_charge_back(upload);
  EXPECT_EQ(ledger_->totals("ann").bytes, 10);
  uploads_->finish(upload, "/v1/arrays/a");
  EXPECT_EQ(ledger_->totals("ann").bytes, 0);
  open();
  EXPECT_EQ(uploads_->status(uploads_->find(upload->id, "ann")).result, "/v1/arrays/a");
}

TEST_F(Uploads, one_that_a_request_appends_to_or_finishes_is_not_cancelled) {
  const UploadRef upload = uploads_->create("ann", "", std::nullopt);
  {
    Append append(*uploads_, upload, waiter_);
    append.write(as_bytes("0123456789"));
    EXPECT_EQ(refusal([&] { uploads_->remove(upload); }), "upload_in_use");
    EXPECT_EQ(append.seal(), 10);
  }
  uploads_->remove(upload);
  EXPECT_EQ(refusal([&] { send(upload, "x"); }), "not_found");
  (**store_).collect_garbage();
  EXPECT_TRUE((**store_).blobs().list().empty());
}

TEST_F(Uploads, expire_when_nothing_comes) {
  const UploadRef idle = uploads_->create("ann", "", std::nullopt), busy = uploads_->create("ann", "", std::nullopt);
  clock_.now += std::chrono::seconds(40);
  send(busy, "x");
  EXPECT_EQ(uploads_->status(idle).time_left, std::chrono::seconds(20));
  clock_.now += std::chrono::seconds(40);
  uploads_->expire();
  EXPECT_EQ(refusal([&] { uploads_->find(idle->id, "ann"); }), "not_found");
  EXPECT_EQ(offset(uploads_->find(busy->id, "ann")), 1);
}

TEST_F(Uploads, of_those_that_are_done_the_oldest_go) {
  std::vector<std::string> ids;
  const auto run = [&](const std::string& principal) {
    const UploadRef upload = uploads_->create(principal, "request", std::nullopt);
    send(upload, "x");
    uploads_->give_charge(upload);
    uploads_->finish(upload, "/v1/arrays/a");
    return upload->id;
  };
  const std::string others = run("bob");
  for (int i = 0; i < 5; ++i) ids.push_back(run("ann"));
  for (const bool is_restarted : {false, true}) {
    if (is_restarted) open();
    EXPECT_EQ(refusal([&] { uploads_->find(ids[1], "ann"); }), "not_found") << is_restarted;
    for (const size_t i : {2, 3, 4}) EXPECT_TRUE(uploads_->status(uploads_->find(ids[i], "ann")).is_done);
    EXPECT_TRUE(uploads_->status(uploads_->find(others, "bob")).is_done);
  }
  ids.push_back(run("ann"));
  EXPECT_EQ(refusal([&] { uploads_->find(ids[2], "ann"); }), "not_found") << "a start counts those that it finds";
  EXPECT_TRUE(uploads_->status(uploads_->find(ids[3], "ann")).is_done);
}

TEST_F(Uploads, are_found_again_after_a_restart) {
  const std::string open_id = [&] {
    const UploadRef upload = uploads_->create("ann", "request", 30);
    send(upload, "0123456789");
    return upload->id;
  }();
  const std::string done_id = [&] {
    const UploadRef upload = uploads_->create("ann", "", 3);
    send(upload, "012");
    uploads_->finish(upload, "/v1/x");
    return upload->id;
  }();
  open();
  const UploadRef upload = uploads_->find(open_id, "ann");
  EXPECT_EQ(upload->request, "request");
  EXPECT_EQ(offset(upload), 10);
  EXPECT_EQ(uploads_->status(upload).length, 30);
  EXPECT_EQ(ledger_->totals("ann").bytes, 30);
  send(upload, "abcdefghij");
  EXPECT_EQ(read(upload, 64), "0123456789abcdefghij");
  const UploadStatus done = uploads_->status(uploads_->find(done_id, "ann"));
  EXPECT_TRUE(done.is_done && done.offset == 3 && done.result == "/v1/x");
}

TEST_F(Uploads, without_one_of_its_parts_an_upload_is_gone) {
  const UploadRef upload = uploads_->create("ann", "", std::nullopt);
  send(upload, "0123456789");
  const std::string id = upload->id;
  uploads_.reset();
  store_.reset();
  int removed = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path() + "/blobs")) {
    if (entry.is_regular_file() && removed++ == 0) std::filesystem::remove(entry.path());
  }
  open();
  EXPECT_EQ(refusal([&] { uploads_->find(id, "ann"); }), "not_found");
  EXPECT_TRUE((**store_).blobs().list().empty()) << "the other part is an orphan";
}

}  // namespace
}  // namespace meshd::uploads
