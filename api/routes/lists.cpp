#include <utility>

#include "api/http/characters.h"
#include "api/routes/routes.h"

namespace meshd::api {
namespace {

constexpr int64_t kPageBytes = int64_t{4} << 20;
constexpr int64_t kMemoryPerRow = 1024;

}  // namespace

bool PageBudget::admit(int64_t stored_bytes) {
  const int64_t needed = stored_bytes * memory_per_byte_ + kMemoryPerRow;
  if (std::exchange(is_empty_, false)) {
    // It may be larger than the account: without it the list would end there for ever.
    if (!request_.memory.try_grow_beyond(needed))
      throw core::Error("memory_full", "other requests hold the memory that the first entry of the page needs")
          .with_retry_after(1);
  } else if (stored_ + stored_bytes > kPageBytes || !request_.memory.try_grow(needed)) {
    is_full_ = true;
    return false;
  }
  stored_ += stored_bytes;
  return true;
}

storage::PageRequest page_of(Request& request, std::initializer_list<std::string_view> others) {
  std::vector<std::string_view> known{"limit", "cursor"};
  known.insert(known.end(), others);
  request.query.require_known(known);
  storage::PageRequest page;
  page.limit = request.query.integer("limit", 100, 1, storage::kMaxPageSize);
  page.cursor = std::string(request.query.get("cursor").value_or(""));
  page.admit = [budget = PageBudget(request)](int64_t bytes) mutable { return budget.admit(bytes); };
  // What the lists give: ids, numbers and names, joined by '/'.
  for (const char c : page.cursor) {
    if (!is_alphanumeric(c) && c != '_' && c != '-' && c != '/' && c != '.')
      throw core::Error("invalid_query", "cursor is not one that this list gave");
  }
  return page;
}

void note_next(Response& response, const Request& request, const std::string& next, std::string_view cursor) {
  if (next.empty()) return;
  std::string link = "<" + request.path + "?" + std::string(cursor) + "=" + percent_encode(next);
  for (const auto& [name, value] : request.query.parameters()) {
    if (name != cursor) link += "&" + percent_encode(name) + "=" + percent_encode(value);
  }
  response.headers.set("Link", link + ">; rel=\"next\"");
}

Response list_response(const Request& request, std::string page, const std::string& next, std::string_view cursor) {
  Response response = json(200, std::move(page));
  note_next(response, request, next, cursor);
  return response;
}

}  // namespace meshd::api
