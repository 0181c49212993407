#include "api/codecs/runs/decoded_runs.h"

#include <utility>

namespace meshd::api {
namespace {

std::string cache_key(const std::string& principal, std::string_view document) {
  return std::string(principal).append(1, '\0').append(document);
}

}  // namespace

std::shared_ptr<DecodedRuns::Entry> DecodedRuns::find(const std::string& principal, std::string_view document) {
  if (document.size() > kLongestDocument) return nullptr;
  const std::string key = cache_key(principal, document);
  return cache_.with([&](auto& cache) {
    const std::shared_ptr<Entry>* found = cache.find(key);
    return found == nullptr ? nullptr : *found;
  });
}

std::shared_ptr<DecodedRuns::Entry> DecodedRuns::keep(const std::string& principal, std::string_view document,
                                                      std::shared_ptr<const DecodedRun> run) {
  if (document.size() > kLongestDocument) return nullptr;
  std::string key = cache_key(principal, document);
  auto entry = std::make_shared<Entry>();
  entry->run = std::move(run);
  // What was decoded is about as large as the document: values are base64 or text there.
  const auto bytes = static_cast<int64_t>(sizeof(Entry) + sizeof(DecodedRun) + 4 * key.size());
  // An entry that is there is of a program that has left the compiler's cache.
  return cache_.with([&](auto& cache) { return cache.replace(std::move(key), std::move(entry), bytes); });
}

}  // namespace meshd::api
