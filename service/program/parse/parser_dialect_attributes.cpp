// Attributes of dialects: #stablehlo.gather<...>, #stablehlo<comparison_direction LT>, aliases, and those that no stage
// reads.
#include <algorithm>

#include "service/program/parse/parser.h"

namespace meshd::program {
namespace {

constexpr std::string_view kReadDialects[] = {"stablehlo", "chlo", "mhlo"};

bool is_read(std::string_view dialect) {
  for (const std::string_view known : kReadDialects) {
    if (dialect == known) return true;
  }
  return false;
}

/// Entry names of #stablehlo.conv by the three groups of its short form.
struct ConvolutionNames {
  char first_letter;
  std::string_view first;
  char second_letter;
  std::string_view second;
  std::string_view spatial;
};
constexpr ConvolutionNames kConvolutionGroups[] = {
    {'b', "input_batch_dimension", 'f', "input_feature_dimension", "input_spatial_dimensions"},
    {'i', "kernel_input_feature_dimension", 'o', "kernel_output_feature_dimension", "kernel_spatial_dimensions"},
    {'b', "output_batch_dimension", 'f', "output_feature_dimension", "output_spatial_dimensions"},
};

/// Attributes that texts before 2023 name by the dialect that StableHLO came from: #mhlo.dot<...>,
/// #mhlo<comparison_direction LT>. Others of that dialect are ignored.
std::string today(std::string_view name) {
  constexpr std::string_view kSame[] = {"mhlo",
                                        "mhlo.dot",
                                        "mhlo.gather",
                                        "mhlo.conv",
                                        "mhlo.channel_handle",
                                        "mhlo.scatter",
                                        "mhlo.output_operand_alias"};
  if (std::find(std::begin(kSame), std::end(kSame), name) == std::end(kSame)) return std::string(name);
  return "stablehlo" + std::string(name.substr(4));
}

}  // namespace

void Parser::enter_alias(const Token& use) {
  const auto found = aliases_.find(use.text);
  if (found == aliases_.end()) fail("program_syntax", use, "alias " + describe(use) + " is not defined above its use");
  std::tie(lexer_, token_) = found->second;
}

ir::Attribute Parser::hash_attribute() {
  const Token start = take();
  const std::string name = today(start.text.substr(1));
  const size_t dot = name.find('.');
  const std::string dialect = name.substr(0, dot);
  if (dot == std::string::npos && !at('<')) return expand_alias(start, [&] { return attribute(); });
  if (dialect == "sdy") return sdy_attribute(name);
  if (dialect == "vhlo") return vhlo_attribute(start);
  if (!is_read(dialect)) {
    std::string text(start.text);
    if (at('<')) text += skip_balanced();
    return {ir::OpaqueAttr{std::move(text)}};
  }
  if (dot == std::string::npos) return enum_attribute(dialect);
  return struct_attribute(name);
}

ir::Attribute Parser::enum_attribute(const std::string& dialect) {
  expect('<', "behind the name of a dialect");
  std::string kind(expect(TokenKind::kWord, "the kind of an attribute").text);
  if (dialect != "stablehlo") kind = dialect + "." + kind;
  std::string value(expect(TokenKind::kWord, "the value of an attribute").text);
  expect('>', "at the end of an attribute");
  return {ir::EnumAttr{std::move(kind), std::move(value)}};
}

ir::Attribute Parser::struct_attribute(const std::string& name) {
  ir::DictAttr out;
  out.name = name;
  expect('<', "behind '#" + name + "'");
  if (accept('>')) return {std::move(out)};
  if (name == "stablehlo.conv" && at('[')) {
    out = convolution_dimensions();
    expect('>', "at the end of convolution dimensions");
    return {std::move(out)};
  }
  accept("raw");
  // #stablehlo.result_accuracy_mode<DEFAULT> holds one word and no fields.
  const Token first = expect(TokenKind::kWord, "the name of a field");
  if (accept('>')) {
    const std::string kind = name.substr(0, 10) == "stablehlo." ? name.substr(10) : name;
    return {ir::EnumAttr{kind, std::string(first.text)}};
  }
  Token key = first;
  while (true) {
    expect('=', "behind a field's name");
    out.entries.emplace_back(std::string(key.text), struct_field());
    if (!accept(',')) break;
    key = expect(TokenKind::kWord, "the name of a field");
  }
  expect('>', "at the end of '#" + name + "'");
  return {std::move(out)};
}

ir::Attribute Parser::struct_field() {
  if (!at('[')) return attribute();
  // Lists of integers are kept as such; JAX writes nothing else, but result types may follow one day.
  const auto saved = std::pair(lexer_, token_);
  advance();
  const bool integers = at(']') || at('-') || token_.is(TokenKind::kInteger);
  std::tie(lexer_, token_) = saved;
  if (!integers) return list_attribute();
  return {ir::IntArrayAttr{integer_list("around integers"), "i64"}};
}

ir::DictAttr Parser::convolution_dimensions() {
  ir::DictAttr out;
  out.name = "stablehlo.conv";
  for (size_t group = 0; group < 3; ++group) {
    if (group == 1) expect_word("x", "between input and kernel dimensions");
    if (group == 2) expect(TokenKind::kArrow, "'->' before output dimensions");
    const ConvolutionNames& names = kConvolutionGroups[group];
    const Token start = token_;
    int64_t first = -1;
    int64_t second = -1;
    std::vector<int64_t> spatial;
    int64_t position = 0;
    list('[', ']', "around convolution dimensions", [&] {
      if (token_.is(TokenKind::kInteger)) {
        const Token number = token_;
        const int64_t index = integer("a spatial dimension");
        if (index >= kMaxRank) fail("invalid_program", number, "a spatial dimension is out of range");
        if (index >= static_cast<int64_t>(spatial.size())) spatial.resize(static_cast<size_t>(index) + 1, -1);
        spatial[static_cast<size_t>(index)] = position;
      } else {
        const Token letter = expect(TokenKind::kWord, "a dimension's letter or number");
        if (letter.text == std::string_view(&names.first_letter, 1)) {
          first = position;
        } else if (letter.text == std::string_view(&names.second_letter, 1)) {
          second = position;
        } else {
          fail("program_syntax", letter, "unknown convolution dimension " + describe(letter));
        }
      }
      ++position;
    });
    const bool has_gap = std::find(spatial.begin(), spatial.end(), -1) != spatial.end();
    if (first < 0 || second < 0 || has_gap || static_cast<int64_t>(spatial.size()) + 2 != position) {
      fail("invalid_program", start, "convolution dimensions must name each dimension once");
    }
    out.entries.emplace_back(std::string(names.first), ir::Attribute{ir::IntegerAttr{first, "i64"}});
    out.entries.emplace_back(std::string(names.second), ir::Attribute{ir::IntegerAttr{second, "i64"}});
    out.entries.emplace_back(std::string(names.spatial), ir::Attribute{ir::IntArrayAttr{std::move(spatial), "i64"}});
  }
  return out;
}

}  // namespace meshd::program
