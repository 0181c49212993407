// A module as text that is equal for equal modules: generic form, attributes in the order of their names.
#pragma once

#include <string>
#include <string_view>

namespace meshd::test {

/// Of text, not verified. Throws what the parser throws.
std::string canonical_text(std::string_view text);

}  // namespace meshd::test
