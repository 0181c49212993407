// Text and parts of HTML pages. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace meshd::api {

/// Text between tags and in attributes: <, >, & and " escaped.
std::string escaped_html(std::string_view text);

/// What a page puts into the frame of the documentation (api/console/shell.html), as HTML, and its entries of the
/// search index, each a JSON list of kind, title, address and text with a comma in front.
struct PageParts {
  std::string contents, main, search;
};

/// <li><a href="#id">text</a></li>, `id` and `text` escaped.
std::string contents_item(std::string_view id, std::string_view text);
/// A block of text with room for the buttons of a page; `is_shell`: curl lines, which pages offer to run.
std::string text_block(std::string_view text, bool is_shell);
/// An entry of the search index.
std::string search_entry(std::string_view kind, std::string_view title, std::string_view address,
                         std::string_view text);

}  // namespace meshd::api
