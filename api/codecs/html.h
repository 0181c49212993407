// Text for HTML pages. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace meshd::api {

/// Text between tags and in attributes: <, >, & and " escaped.
std::string escaped_html(std::string_view text);

}  // namespace meshd::api
