#include "service/program/parse/other_languages.h"

#include <fmt/core.h>

#include <string>

#include "service/ir/program.h"

namespace meshd::program {
namespace {

struct Beginning {
  std::string_view text;
  std::string_view is;  ///< "this is ..."
  std::string_view instead;
};

constexpr std::string_view kPython =
    "send it with \"format\": \"numpy\" if it is a function over jax.numpy, else the text that "
    "jax.jit(f).lower(*arguments).as_text() prints";
constexpr std::string_view kLowered = "send the StableHLO that jax.jit(f).lower(*arguments).as_text() prints";

constexpr Beginning kBeginnings[] = {
    {"def ", "Python", kPython},
    {"async def ", "Python", kPython},
    {"import ", "Python", kPython},
    {"from ", "Python", kPython},
    {"class ", "Python", kPython},
    {"lambda", "Python", kPython},
    {"@", "Python", kPython},
    {"\"\"\"", "Python", kPython},
    {"HloModule", "HLO text",
     "send StableHLO: jax.jit(f).lower(*arguments).as_text() prints it, without compile() and without dialect=\"hlo\""},
    {"{ lambda", "a jaxpr", kLowered},
    {"{lambda", "a jaxpr", kLowered},
    {"{\"", "JSON", "as application/json it is {\"text\": \"module {...}\"}; a body of text/plain is the module alone"},
    {"{ \"", "JSON",
     "as application/json it is {\"text\": \"module {...}\"}; a body of text/plain is the module alone"},
    {"<!", "HTML", kLowered},
    {"<html", "HTML", kLowered},
    {"; ModuleID", "LLVM IR", kLowered},
    {"define ", "LLVM IR", kLowered},
};

// Moves on to the first line that is neither empty nor a comment: of MLIR, or of Python, whose comments begin as no
// attribute alias does.
void skip_comments(std::string_view& text, int& line) {
  for (;;) {
    const size_t begin = text.find_first_not_of(" \t\r");
    const std::string_view rest = begin == std::string_view::npos ? std::string_view() : text.substr(begin);
    const bool is_skipped = rest.starts_with('\n') || rest.starts_with("//") || rest.starts_with("# ") ||
                            rest.starts_with("#!") || rest.starts_with("#\n");
    const size_t end = text.find('\n');
    if (!is_skipped || end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
    ++line;
  }
}

}  // namespace

void refuse_other_languages(std::string_view text) {
  int line = 1;
  skip_comments(text, line);
  const size_t indent = text.find_first_not_of(" \t\r");
  if (indent == std::string_view::npos) return;
  for (const Beginning& each : kBeginnings) {
    if (!text.substr(indent).starts_with(each.text)) continue;
    ir::fail("program_syntax", {line, static_cast<int>(indent) + 1, {}, -1, {}},
             fmt::format("this is {}, not StableHLO: {}", each.is, each.instead));
  }
}

}  // namespace meshd::program
