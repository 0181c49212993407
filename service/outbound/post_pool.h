// Requests that the server itself sends, with libcurl: POSTs to addresses that an AddressGuard allows, many at once on
// one thread.
//
// What a receiver may do to the server is bounded: redirects are not followed, proxies of the environment are not used,
// what it answers is not kept, and each request has a deadline.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/outbound/address_guard.h"

namespace meshd::outbound {

struct PostRequest {
  std::string url;
  std::vector<std::string> fields;  ///< "Name: value" each
  std::string body;
};

struct PostOutcome {
  int status = 0;                                        ///< of the answer; 0: there was none
  std::string error;                                     ///< why there was none, in words
  std::optional<std::chrono::seconds> retry_after = {};  ///< of the answer, where it says seconds
  [[nodiscard]] bool is_accepted() const { return status >= 200 && status < 300; }
};

struct PostLimits {
  std::chrono::milliseconds connecting{5'000};
  std::chrono::milliseconds whole{15'000};
};

/// What is wrong with a URL to post to: nothing, or "expected http:// or https://", ... An address in place of a name
/// is checked here; what a name resolves to, when it is connected to.
std::optional<std::string> mistake_of_url(const std::string& url, const AddressGuard& guard);

/// Any thread.
class PostPool {
 public:
  explicit PostPool(AddressGuard guard, PostLimits limits = {});
  /// Ends what is under way: its `done` is called with "the server stops".
  ~PostPool();
  PostPool(const PostPool&) = delete;
  PostPool& operator=(const PostPool&) = delete;

  /// `done` runs once, on the pool's thread; it must be short and must neither throw nor wait. It may post again.
  void post(PostRequest request, std::function<void(const PostOutcome&)> done);
  /// Ends what is under way; from then on each request ends at once. Called by the destructor; may be called before.
  void stop();
  [[nodiscard]] const AddressGuard& guard() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace meshd::outbound
