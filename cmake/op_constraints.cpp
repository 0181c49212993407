// Reads the labels of the StableHLO specification where the checks of ops stand, and writes them as a table: what
// /v1/ops lists is what messages say, and there is no second list. Run by the build: op_constraints OUT.cpp SOURCE...
//
// Two things are read in a source file:
// - A string that begins with an op and labels, and what follows it in the same argument:
//     reject(view, "slice C3: dim " + std::to_string(d) + " must have 0 <= start") -> slice, C3, "dim ... must have 0
//     <= start"
//   With agree(view, "slice C5", ...) the text is that of agree: results are what follows from the operands.
// - A comment for checks that several ops share and whose message is put together from the op's name:
//     // checks: all_reduce C1: ids of replica_groups stand once
#include <cctype>
#include <fstream>
#include <iostream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

namespace {

using Row = std::tuple<std::string, std::string, std::string>;  // op, label, text

constexpr const char* kAgrees = "the results are declared with the types that follow from operands and attributes";

/// The string literal that begins at `at` (a '"'); `at` is behind it afterwards.
std::string literal(const std::string& source, size_t& at) {
  std::string out;
  for (++at; at < source.size() && source[at] != '"'; ++at) {
    if (source[at] == '\\' && at + 1 < source.size()) ++at;
    out += source[at];
  }
  ++at;
  return out;
}

/// Without what a message says of the case at hand: ", got ..." and "(operand ..., result ...)" at its end.
std::string without_case(std::string text) {
  const size_t got = text.find(", got ");
  if (got != std::string::npos) text.resize(got);
  const size_t open = text.rfind(" (");
  if (text.ends_with(")") && open != std::string::npos && text.find("...", open) != std::string::npos)
    text.resize(open);
  return text;
}

/// What the argument says behind the literal that was read: other literals, and "..." for what is put in between.
std::string rest_of_argument(const std::string& source, size_t begin, size_t at) {
  std::string out;
  constexpr std::string_view kWrapped = "std::string(";  // std::string("slice C3: ") + (x ? "a" : "b")
  if (begin >= kWrapped.size() && source.compare(begin - kWrapped.size(), kWrapped.size(), kWrapped) == 0) ++at;
  bool gap = false;
  for (int depth = 0; at < source.size();) {
    const char c = source[at];
    if (c == '"') {
      const std::string text = literal(source, at);
      if (depth > 0) continue;
      if (gap) out += "...";
      gap = false;
      out += text;
      continue;
    }
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
    if (depth < 0 || (depth == 0 && (c == ',' || c == ';'))) break;
    gap = gap || (std::isspace(static_cast<unsigned char>(c)) == 0 && c != '+');
    ++at;
  }
  return gap ? out + "..." : out;
}

void read(const std::string& source, std::set<Row>& rows) {
  static const std::regex kLabelled("^([a-z_0-9]+) ([CI][0-9]+(?:, [CI][0-9]+)*)(?:: (.*))?$");
  static const std::regex kComment("// checks: ([a-z_0-9]+) ([CI][0-9]+): ([^\n]*)");
  for (std::sregex_iterator found(source.begin(), source.end(), kComment), end; found != end; ++found)
    rows.emplace((*found)[1], (*found)[2], (*found)[3]);
  for (size_t at = 0; at < source.size();) {
    if (source.compare(at, 2, "//") == 0) {
      at = std::min(source.find('\n', at), source.size());
      continue;
    }
    if (source[at] == '\'') {  // a character, '"' among them
      at += source[at + 1] == '\\' ? 4 : 3;
      continue;
    }
    if (source.compare(at, 2, "R\"") == 0) {  // texts of examples
      const size_t open = source.find('(', at);
      const std::string close = ")" + source.substr(at + 2, open - at - 2) + "\"";
      at = std::min(source.find(close, open), source.size()) + close.size();
      continue;
    }
    if (source[at] != '"') {
      ++at;
      continue;
    }
    const size_t begin = at;
    const std::string text = literal(source, at);
    std::smatch match;
    if (!std::regex_match(text, match, kLabelled)) continue;
    std::string said =
        match[3].matched ? without_case(match[3].str() + rest_of_argument(source, begin, at)) : std::string();
    if (!match[3].matched) {
      const size_t line = source.rfind('\n', begin);
      const bool agrees = source.substr(line, begin - line).find("agree(") != std::string::npos;
      // Shared functions take the label, then the name of the attribute they look at.
      const size_t next = source.find_first_not_of(", \n", at);
      if (agrees) {
        said = kAgrees;
      } else if (next != std::string::npos && source[next] == '"') {
        size_t behind = next;
        said = "attribute '" + literal(source, behind) + "' fits the operands";
      }
    }
    if (said.empty()) continue;  // the label of a shared function: a comment says it
    const std::regex comma(", ");
    const std::string labels = match[2];
    for (std::sregex_token_iterator label(labels.begin(), labels.end(), comma, -1), none; label != none; ++label)
      rows.emplace(match[1], *label, said);
  }
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

int main(int count, char** arguments) {
  std::set<Row> rows;
  for (int i = 2; i < count; ++i) {
    std::ifstream file(arguments[i]);
    if (!file) {
      std::cerr << "cannot read " << arguments[i] << "\n";
      return 1;
    }
    read({std::istreambuf_iterator<char>(file), {}}, rows);
  }
  std::ofstream out(arguments[1]);
  out << "// Made by cmake/op_constraints.cpp from the checks of service/ops.\n"
         "#include \"service/ops/op_constraints.h\"\n\nnamespace meshd::ops {\n\n"
         "std::span<const OpConstraint> op_constraints() {\n  static constexpr OpConstraint kRows[] = {\n";
  for (const auto& [op, label, text] : rows)
    out << "      {" << quoted(op) << ", " << quoted(label) << ", " << quoted(text) << "},\n";
  out << "  };\n  return kRows;\n}\n\n}  // namespace meshd::ops\n";
  return out.good() ? 0 : 1;
}
