// Text for HTML pages. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace meshd::api {

/// Text as it may stand between tags: <, > and & escaped.
std::string escaped_html(std::string_view text);

}  // namespace meshd::api
