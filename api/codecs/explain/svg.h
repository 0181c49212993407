// Parts of pictures (SVG) of explanations. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "service/compile/explain/explain.h"

namespace meshd::api {

/// Text of a picture: markup escaped, control characters and bytes that are not ASCII as '?'.
std::string svg_text(std::string_view text);
/// <text> at a place; `kind` is a class of the picture's style, or empty.
std::string svg_label(int x, int y, std::string_view text, std::string_view kind = {});

/// What is above the values: name, legend, meshes, totals. `height` is where the values begin.
struct ExplanationHead {
  std::string svg, description;
  int height = 0;
};
ExplanationHead explanation_head(const compile::Explanation& explanation, int left, int width);

}  // namespace meshd::api
