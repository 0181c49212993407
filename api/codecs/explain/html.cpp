#include "api/codecs/explain/html.h"

#include <fmt/core.h>

#include "api/json/json.h"

namespace meshd::api {

std::string escaped_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string contents_item(std::string_view id, std::string_view text) {
  return fmt::format("<li><a href=\"#{}\">{}</a></li>", escaped_html(id), escaped_html(text));
}

std::string text_block(std::string_view text, bool is_shell) {
  return fmt::format(R"(<div class="block wrap"><span class="tools"></span><pre{}><code>{}</code></pre></div>)",
                     is_shell ? " data-shell" : "", escaped_html(text));
}

std::string search_entry(std::string_view kind, std::string_view title, std::string_view address,
                         std::string_view text) {
  return fmt::format(",[{},{},{},{}]", quote(kind), quote(title), quote(address), quote(text));
}

}  // namespace meshd::api
