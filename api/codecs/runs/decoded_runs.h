// A cache of decoded runs by their bytes: a client that repeats a run sends the same document, maybe beside other
// files.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "api/codecs/runs/job_request_codec.h"
#include "service/core/locked.h"
#include "service/core/lru_cache.h"

namespace meshd::api {

/// Any thread.
class DecodedRuns {
 public:
  /// True for a document that is likely to come again: a short one, or one that is long for the text of its program
  /// (`text_bytes`, as it is without escapes). Others bring data, which is another next time.
  static bool may_come_again(size_t bytes, size_t text_bytes);

  struct Entry {
    std::shared_ptr<const DecodedRun> run;
    std::string document;  ///< a long one, whose key is a part of it
    /// Of the last run, if that was brief (jobs::JobResult::is_brief): the next one is, too, as long as the compiler's
    /// cache keeps the plan.
    core::Locked<std::weak_ptr<const compile::Plan>> brief_plan;
    /// Several threads took part in the last run.
    std::atomic<bool> is_shared{false};

    [[nodiscard]] bool is_brief() const {
      return brief_plan.with([](const auto& plan) { return !plan.expired(); });
    }
  };
  /// Null: the principal has not sent this document, or it has left the cache.
  std::shared_ptr<Entry> find(const std::string& principal, std::string_view document);
  /// Of a document that may_come_again().
  std::shared_ptr<Entry> keep(const std::string& principal, std::string_view document,
                              std::shared_ptr<const DecodedRun> run);

 private:
  static std::string key_of(const std::string& principal, std::string_view document);

  static constexpr size_t kEntries = 4096;
  static constexpr int64_t kBytes = int64_t{8} << 20;

  core::Locked<core::LruCache<std::shared_ptr<Entry>>> cache_{std::in_place, kEntries, kBytes};
};

}  // namespace meshd::api
