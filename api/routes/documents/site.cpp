#include "api/routes/documents/site.h"

#include <fmt/core.h>

#include <algorithm>

#include "api/http/embedded.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

// No inline script or style, nothing from elsewhere; pictures of answers are blobs in an <img>. Scripts write text
// only: Trusted Types refuse markup made from strings.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; base-uri "
    "'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

const embedded::SiteFile& file_at(std::string_view path) {
  const auto files = embedded::site_files();
  const auto at = std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.path == path; });
  if (at == files.end()) throw core::Error("not_found", fmt::format("there is no page '{}'; / lists the guides", path));
  return *at;
}

Response page(std::string_view media_type, std::string text) {
  return content(200, media_type, std::move(text))
      .with("Content-Security-Policy", kPolicy)
      .with("Referrer-Policy", "same-origin");
}

std::string filled(std::string_view text, std::string_view mark, std::string_view with) {
  const size_t at = text.find(mark);
  return fmt::format("{}{}{}", text.substr(0, at), with, text.substr(at + mark.size()));
}

}  // namespace

Response site_file(std::string_view path) {
  const embedded::SiteFile& file = file_at(path);
  return page(file.media_type, std::string(file.text)).with("ETag", file.etag).with("Cache-Control", "no-cache");
}

Response site_page(std::string_view path, const PageParts& parts) {
  const embedded::SiteFile& file = file_at(path);
  return page(file.media_type, filled(filled(file.text, "<!--contents-->", parts.contents), "<!--main-->", parts.main));
}

Response search_index(std::string_view entries) {
  const embedded::SiteFile& file = file_at("/docs/assets/search.json");
  return page(file.media_type, filled(file.text, "/*more*/", entries)).with("Cache-Control", "no-cache");
}

}  // namespace meshd::api
