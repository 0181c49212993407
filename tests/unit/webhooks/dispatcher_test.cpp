// Which webhooks are delivered when there are many, and which are forgotten.
#include "service/webhooks/dispatcher.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "service/webhooks/webhook_store.h"
#include "tests/support/eventually.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

/// A port that takes connections and never answers.
class SilentReceiver {
 public:
  SilentReceiver() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd_, 128), 0);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~SilentReceiver() { ::close(fd_); }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/"; }
  void wait_for_connection() const { ::close(::accept(fd_, nullptr, nullptr)); }

 private:
  int fd_;
  uint16_t port_ = 0;
};

/// The system's, which a test sets forward.
class SetClock final : public core::Clock {
 public:
  [[nodiscard]] core::WallTime wall() const override { return system_.wall() + set_forward.load() + passed.load(); }
  [[nodiscard]] core::SteadyTime steady() const override { return system_.steady() + passed.load(); }
  std::atomic<std::chrono::hours> set_forward{std::chrono::hours(0)};
  std::atomic<std::chrono::hours> passed{std::chrono::hours(0)};

 private:
  core::SystemClock system_;
};

webhooks::DispatcherOptions with_short_waits() {
  webhooks::DispatcherOptions out;
  out.first_wait = std::chrono::milliseconds(1);
  out.longest_wait = std::chrono::milliseconds(10);
  return out;
}

class Dispatcher : public ::testing::Test {
 protected:
  Dispatcher() { deliveries_.start(); }

  std::string session_of(const std::string& principal) {
    auto row = session_row("ses_" + principal, principal);
    store_->catalog().write([&](storage::Transaction& transaction) {
      transaction.insert_session(row);
      std::vector<storage::EffectRow> effects = {effect_row("job", 1, "")};
      transaction.append_effects(row.id, effects);
    });
    return row.id;
  }
  storage::WebhookRow add(const std::string& principal, const std::string& session, const std::string& url,
                          int64_t after = 0) {
    webhooks::WebhookRequest request;
    request.session = session;
    request.url = url;
    request.after = after;
    return webhooks_.create(principal, request, std::nullopt);
  }

  TempFolder folder_{TempFolder::Where::kMemory};
  OpenStore store_{folder_.path()};
  SetClock clock_;
  effects::EffectLog log_{store_->catalog()};
  SilentReceiver silent_, other_, third_;
  outbound::PostPool posts_{outbound::AddressGuard({*outbound::parse_network("127.0.0.0/8")}),
                            {std::chrono::minutes(10), std::chrono::minutes(10)}};
  webhooks::Dispatcher deliveries_{store_->catalog(),
                                   log_,
                                   posts_,
                                   clock_,
                                   core::MemoryLedger::create(int64_t{1} << 30),
                                   {[](const storage::WebhookRow&, std::vector<storage::EffectRow>) { return "{}"; },
                                    [](const storage::WebhookRow&, const storage::JobRow&) { return "{}"; }},
                                   [](const std::string&, const std::string&) {},
                                   with_short_waits()};
  webhooks::WebhookStore webhooks_{store_->catalog(), clock_, posts_.guard(),
                                   [this](const storage::WebhookRow& row) { deliveries_.changed(row); },
                                   [this](const std::string& id) { deliveries_.removed(id); }};
};

// Receivers that take their time, as many as may be under way at all, leave room for one of another principal.
TEST_F(Dispatcher, slow_receivers_of_one_principal_do_not_keep_those_of_others_waiting) {
  const std::string mine = session_of("ann"), theirs = session_of("ben");
  for (int i = 0; i < 40; ++i) add("ann", mine, (i % 2 == 0 ? silent_ : third_).url());
  ASSERT_TRUE(eventually([&] { return deliveries_.counters().under_way >= 8; }));
  add("ben", theirs, other_.url());
  ASSERT_TRUE(eventually([&] { return deliveries_.counters().under_way >= 9; }));
  ASSERT_EQ(deliveries_.counters().under_way, 9);
  other_.wait_for_connection();
}

// As many webhooks to one receiver as a principal may have under way leave room for another receiver of theirs.
TEST_F(Dispatcher, slow_receiver_does_not_keep_others_of_its_principal_waiting) {
  const std::string session = session_of("ann");
  for (int i = 0; i < 40; ++i) add("ann", session, silent_.url() + "?hook=" + std::to_string(i));
  ASSERT_TRUE(eventually([&] { return deliveries_.counters().under_way >= 4; }));
  add("ann", session, other_.url() + "hook");
  other_.wait_for_connection();
  ASSERT_TRUE(eventually([&] { return deliveries_.counters().under_way >= 5; }));
  ASSERT_EQ(deliveries_.counters().under_way, 5);
}

TEST_F(Dispatcher, webhook_that_fails_is_disabled_by_the_time_that_passed_not_by_a_clock_that_was_set) {
  const std::string nobody = SilentReceiver().url();
  const std::string id = add("ann", session_of("ann"), nobody).id;
  const auto fails_again = [&] {
    const int64_t before = webhooks_.get(id, "ann").failures;
    return eventually([&] { return webhooks_.get(id, "ann").failures >= before + 2; });
  };
  ASSERT_TRUE(fails_again());
  clock_.set_forward = std::chrono::hours(100);
  EXPECT_TRUE(fails_again());
  clock_.set_forward = std::chrono::hours(-100);
  EXPECT_TRUE(fails_again());
  clock_.passed = std::chrono::hours(71);
  EXPECT_TRUE(fails_again());
  clock_.passed = std::chrono::hours(73);
  EXPECT_TRUE(eventually([&] { return webhooks_.get(id, "ann").state == storage::WebhookState::kDisabled; }));
}

TEST_F(Dispatcher, deleted_webhooks_are_forgotten) {
  const std::string session = session_of("ann");
  for (int i = 0; i < 20; ++i) webhooks_.remove(add("ann", session, silent_.url(), 1).id, "ann");
  EXPECT_TRUE(eventually([&] { return deliveries_.counters().active == 0; }));
}

}  // namespace
}  // namespace meshd::testing
