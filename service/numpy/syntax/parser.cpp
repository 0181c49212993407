#include "service/numpy/syntax/parser.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "service/core/near_names.h"
#include "service/numpy/syntax/lexer.h"
#include "service/numpy/syntax/limits.h"
#include "service/numpy/syntax/mistakes.h"

namespace meshd::numpy {
namespace {

constexpr std::array<std::string_view, 35> kKeywords = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
constexpr std::array<std::string_view, 11> kUnsupported = {"class", "with", "try",   "global", "nonlocal",
                                                           "yield", "del",  "async", "await",  "match"};

// Binary operators by how strongly they bind.
constexpr std::array<std::pair<std::string_view, int>, 12> kBinary = {{{"|", 1},
                                                                       {"^", 2},
                                                                       {"&", 3},
                                                                       {"<<", 4},
                                                                       {">>", 4},
                                                                       {"+", 5},
                                                                       {"-", 5},
                                                                       {"*", 6},
                                                                       {"/", 6},
                                                                       {"//", 6},
                                                                       {"%", 6},
                                                                       {"@", 6}}};

std::string shown(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd:
      return "the end of the text";
    case TokenKind::kNewline:
      return "the end of the line";
    case TokenKind::kIndent:
      return "more indentation";
    case TokenKind::kDedent:
      return "less indentation";
    case TokenKind::kString:
    case TokenKind::kFormat:
      return "a string";
    default:
      return "'" + token.text + "'";
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(tokens_of(text)) {}

  /// The expression that a text at this place is.
  static ExpressionRef field(const FormatField& field) {
    // In brackets, because blanks at the beginning of a line are indentation.
    Parser parser("(" + field.source + ")");
    for (Token& token : parser.tokens_) token.place = {field.place.line, field.place.column + token.place.column - 2};
    parser.expect("(", "");
    ExpressionRef out = parser.expressions();
    parser.expect(")", "behind a field of an f-string");
    return out;
  }

  Syntax run() {
    Syntax out;
    while (now().kind != TokenKind::kEnd) {
      if (now().is("import") || now().is("from")) {
        import(out);
      } else {
        statement(out.body, 0);
      }
    }
    return out;
  }

  FunctionRef signature(std::string_view name) {
    auto made = std::make_shared<Function>();
    made->name = name;
    parameters(*made, "");
    return made;
  }

 private:
  [[nodiscard]] const Token& now() const { return tokens_[at_]; }
  [[nodiscard]] const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool take_if(std::string_view text) {
    if (!now().is(text)) return false;
    take();
    return true;
  }
  [[noreturn]] void expected(const std::string& what) const {
    fail("program_syntax", now().place, "expected " + what + ", got " + shown(now()));
  }
  void expect(std::string_view text, const std::string& where) {
    if (!take_if(text)) expected("'" + std::string(text) + "' " + where);
  }
  std::string name(const std::string& what) {
    if (now().kind != TokenKind::kName) expected(what);
    if (std::find(kKeywords.begin(), kKeywords.end(), now().text) != kKeywords.end())
      expected(what + ", which a keyword cannot be");
    return take().text;
  }

  static std::shared_ptr<Expression> made(ExpressionKind kind, Place place, std::string text = {},
                                          std::vector<ExpressionRef> children = {}) {
    auto out = std::make_shared<Expression>();
    out->kind = kind;
    out->place = place;
    out->text = std::move(text);
    for (const ExpressionRef& child : children) {
      if (child != nullptr) out->depth = std::max(out->depth, child->depth + 1);
    }
    if (out->depth > kMaxSyntaxDepth) {
      fail("program_syntax", place,
           fmt::format("expressions are nested more than {} deep (chains of operators too); give parts of it names",
                       kMaxSyntaxDepth));
    }
    out->children = std::move(children);
    return out;
  }

  // --- statements

  void import(Syntax& out) {
    const Place place = now().place;
    if (take_if("import")) {
      do {
        const std::string path = dotted();
        const bool renamed = take_if("as");
        const std::string as = renamed ? name("a name behind 'as'") : path.substr(0, path.find('.'));
        out.imports.push_back({as, renamed ? path : as, place});
      } while (take_if(","));
      return end_of_statement();
    }
    take();
    const std::string path = dotted();
    expect("import", "behind the module's name");
    const bool bracket = take_if("(");
    do {
      if (bracket && now().is(")")) break;
      if (now().is("*")) expected("names; 'import *' is not supported, all names are in scope anyway");
      const std::string what = name("a name to import");
      const std::string as = take_if("as") ? name("a name behind 'as'") : what;
      out.imports.push_back({as, path + "." + what, place});
    } while (take_if(","));
    if (bracket) expect(")", "behind the names");
    end_of_statement();
  }

  std::string dotted() {
    std::string out = name("the name of a module");
    while (take_if(".")) out += "." + name("a name behind '.'");
    return out;
  }

  void end_of_statement() {
    if (take_if(";")) {
      if (now().kind == TokenKind::kNewline) take();
      return;
    }
    if (now().kind == TokenKind::kEnd) return;
    if (now().kind != TokenKind::kNewline) {
      // "retrun x" is a name and another one.
      const Token& before = tokens_[at_ - 1];
      const bool is_name = now().kind == TokenKind::kName && before.kind == TokenKind::kName;
      fail("program_syntax", now().place,
           "expected the end of the statement, got " + shown(now()) +
               (before.is("print") ? "; log(\"x {}\", x) writes to the log"
                : is_name          ? core::did_you_mean(before.text, kKeywords)
                                   : ""));
    }
    take();
  }

  void statement(Block& out, int depth) {
    if (depth > kMaxSyntaxDepth)
      fail("program_syntax", now().place, fmt::format("blocks are nested more than {} deep", kMaxSyntaxDepth));
    if (now().kind == TokenKind::kIndent) expected("a statement of the block around");
    if (now().is("def") || now().is("@")) return definition(out, depth);
    if (now().is("if")) return conditional(out, depth);
    if (now().is("while") || now().is("for")) return loop(out, depth);
    if (now().is("import") || now().is("from"))
      fail("unsupported_type", now().place, "imports belong at the top of the text");
    for (const std::string_view word : kUnsupported) {
      if (now().kind != TokenKind::kName || now().text != word) continue;
      if (word == "match" && next().kind != TokenKind::kName) continue;
      fail("unsupported_type", now().place, "'" + std::string(word) + "' is not supported in programs of NumPy syntax");
    }
    simple(out);
  }

  void simple(Block& out) {
    ++statements_;
    Statement made_statement;
    made_statement.place = now().place;
    if (take_if("return")) {
      made_statement.kind = StatementKind::kReturn;
      if (now().kind != TokenKind::kNewline && !now().is(";") && now().kind != TokenKind::kEnd)
        made_statement.value = expressions();
    } else if (take_if("pass")) {
      made_statement.kind = StatementKind::kPass;
    } else if (take_if("break")) {
      made_statement.kind = StatementKind::kBreak;
    } else if (take_if("continue")) {
      made_statement.kind = StatementKind::kContinue;
    } else if (take_if("raise")) {
      raise(made_statement);
    } else if (take_if("assert")) {
      made_statement.kind = StatementKind::kAssert;
      made_statement.value = expression();
      if (take_if(",")) made_statement.targets.push_back(expression());
    } else {
      assignment(made_statement);
    }
    out.push_back(std::move(made_statement));
    end_of_statement();
  }

  void assignment(Statement& out) {
    ExpressionRef value = expressions();
    if (take_if(":")) {  // an annotation says nothing here
      expression();
      if (!now().is("=")) expected("'=' behind the annotation");
    }
    const std::string& text = now().text;
    const bool augmented = now().kind == TokenKind::kOperator && text.size() > 1 && text.back() == '=' &&
                           text != "==" && text != "!=" && text != "<=" && text != ">=" && text != ":=";
    if (augmented) {
      out.kind = StatementKind::kAugmentedAssign;
      check_target(*value, false);
      out.targets.push_back(value);
      out.text = text.substr(0, text.size() - 1);
      take();
      out.value = expressions();
      return;
    }
    while (take_if("=")) {
      out.kind = StatementKind::kAssign;
      check_target(*value, true);
      out.targets.push_back(value);
      value = expressions();
    }
    if (out.targets.empty()) out.kind = StatementKind::kExpression;
    out.value = value;
  }

  static void check_target(const Expression& target, bool unpacks) {
    switch (target.kind) {
      case ExpressionKind::kName:
      case ExpressionKind::kSubscript:
      case ExpressionKind::kAttribute:
        return;
      case ExpressionKind::kTuple:
      case ExpressionKind::kList:
        if (!unpacks) break;
        for (const ExpressionRef& child : target.children) check_target(*child, true);
        return;
      case ExpressionKind::kStarred:
        if (!unpacks) break;
        return check_target(*target.children[0], false);
      default:
        break;
    }
    fail("program_syntax", target.place, "nothing can be assigned to this; names, tuples of names and x[key] can");
  }

  void definition(Block& out, int depth) {
    auto function = std::make_shared<Function>();
    while (take_if("@")) {
      function->decorators.push_back(expression());
      if (now().kind != TokenKind::kNewline) expected("the end of the line behind a decorator");
      take();
    }
    Statement made_statement;
    made_statement.kind = StatementKind::kFunction;
    made_statement.place = function->place = now().place;
    expect("def", "behind decorators");
    function->name = name("the function's name");
    expect("(", "behind the function's name");
    parameters(*function, ")");
    expect(")", "behind the parameters");
    if (take_if("->")) expression();
    function->body = suite("a def", depth);
    made_statement.function = std::move(function);
    out.push_back(std::move(made_statement));
  }

  // Up to `end`, which is not taken; "" means the end of the text.
  void parameters(Function& function, std::string_view end) {
    ParameterKind kind = ParameterKind::kPositional;
    const auto over = [&] {
      return end.empty() ? now().kind == TokenKind::kEnd || now().kind == TokenKind::kNewline : now().is(end);
    };
    while (!over()) {
      const Place place = now().place;
      if (take_if("/")) {
        for (FunctionParameter& before : function.parameters) before.kind = ParameterKind::kPositionalOnly;
      } else if (take_if("**")) {
        function.parameters.push_back({name("a name behind '**'"), ParameterKind::kKeywords, nullptr, place});
      } else if (take_if("*")) {
        kind = ParameterKind::kKeywordOnly;
        if (!now().is(","))
          function.parameters.push_back({name("a name behind '*'"), ParameterKind::kArguments, nullptr, place});
      } else {
        FunctionParameter parameter{name("the name of a parameter"), kind, nullptr, place};
        for (const FunctionParameter& other : function.parameters) {
          if (other.name == parameter.name)
            fail("program_syntax", place, "parameter '" + parameter.name + "' is there twice");
        }
        if (end != ":" && take_if(":")) expression();
        if (take_if("=")) parameter.otherwise = expression();
        function.parameters.push_back(std::move(parameter));
      }
      if (!over()) expect(",", "between parameters");
    }
  }

  void raise(Statement& out) {
    const Place place = now().place;
    out.kind = StatementKind::kRaise;
    const ExpressionRef raised = expression();
    if (take_if("from")) expression();
    const bool is_call = raised->kind == ExpressionKind::kCall;
    const ExpressionRef& error = is_call ? raised->children[0] : raised;
    if (error->kind != ExpressionKind::kName)
      fail("unsupported_type", place, "'raise' takes an error's name and a text");
    out.text = error->text;
    if (is_call && raised->children.size() > 1) out.value = raised->children[1];
  }

  void conditional(Block& out, int depth) {
    ++statements_;
    Statement made_statement;
    made_statement.kind = StatementKind::kIf;
    made_statement.place = take().place;
    made_statement.value = expression();
    made_statement.body = suite("an if", depth);
    if (now().is("elif")) {
      if (depth + 1 > kMaxSyntaxDepth) expected(fmt::format("fewer branches than {}", kMaxSyntaxDepth));
      conditional(made_statement.otherwise, depth + 1);
    } else if (take_if("else")) {
      if (now().is("if")) fail("program_syntax", now().place, "'else if' is spelt 'elif'");
      made_statement.otherwise = suite("an else", depth);
    }
    out.push_back(std::move(made_statement));
  }

  void loop(Block& out, int depth) {
    const int64_t before = statements_++;
    Statement made_statement;
    made_statement.place = now().place;
    if (take_if("while")) {
      made_statement.kind = StatementKind::kWhile;
      made_statement.value = expression();
    } else {
      take();
      made_statement.kind = StatementKind::kFor;
      made_statement.targets.push_back(target_list());
      expect("in", "behind the loop's variable");
      made_statement.value = expressions();
    }
    made_statement.body = suite("a loop", depth);
    if (now().is("else")) fail("unsupported_type", now().place, "'else' of a loop is not supported");
    made_statement.size = statements_ - before;
    out.push_back(std::move(made_statement));
  }

  Block suite(const std::string& what, int depth) {
    expect(":", "at the head of " + what);
    Block out;
    if (now().kind != TokenKind::kNewline) {
      const int32_t line = now().place.line;
      do {
        simple(out);
      } while (now().place.line == line && now().kind != TokenKind::kEnd && now().kind != TokenKind::kDedent &&
               tokens_[at_ - 1].kind != TokenKind::kNewline);
      return out;
    }
    take();
    if (now().kind != TokenKind::kIndent) expected("an indented block behind " + what);
    take();
    while (now().kind != TokenKind::kDedent && now().kind != TokenKind::kEnd) statement(out, depth + 1);
    if (now().kind == TokenKind::kDedent) take();
    return out;
  }

  // --- expressions

  // Deeper than the tokens' brackets allow only through lambdas, conditionals and unary operators.
  class Nested {
   public:
    explicit Nested(Parser& parser) : parser_(parser) {
      if (++parser_.nested_ > 3 * kMaxSyntaxDepth)
        fail("program_syntax", parser_.now().place, "expressions are nested too deep; give parts of it names");
    }
    ~Nested() { --parser_.nested_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Parser& parser_;
  };

  [[nodiscard]] bool ends_expression() const {
    return now().kind == TokenKind::kNewline || now().kind == TokenKind::kEnd || now().is(")") || now().is("]") ||
           now().is("}") || now().is("=") || now().is(":") || now().is(";") || now().is("in");
  }

  // a, b, *c: one expression, or a tuple of several.
  ExpressionRef expressions() {
    const Place place = now().place;
    ExpressionRef first = starred();
    if (!now().is(",")) {
      if (first->kind == ExpressionKind::kStarred) expected("',' behind a starred expression");
      return first;
    }
    std::vector<ExpressionRef> items{std::move(first)};
    while (take_if(",")) {
      if (ends_expression()) break;
      items.push_back(starred());
    }
    return made(ExpressionKind::kTuple, place, "", std::move(items));
  }

  ExpressionRef starred() {
    const Place place = now().place;
    if (take_if("*")) return made(ExpressionKind::kStarred, place, "", {binary(1)});
    return expression();
  }

  // The targets of a for: names, tuples in brackets or without.
  ExpressionRef target_list() {
    const Place place = now().place;
    std::vector<ExpressionRef> items{primary()};
    bool is_tuple = false;
    while (take_if(",")) {
      is_tuple = true;
      if (now().is("in")) break;
      items.push_back(primary());
    }
    ExpressionRef out = is_tuple ? ExpressionRef(made(ExpressionKind::kTuple, place, "", std::move(items))) : items[0];
    check_target(*out, true);
    return out;
  }

  ExpressionRef expression() {
    const Nested nested(*this);
    const Place place = now().place;
    if (now().is("lambda")) return lambda();
    ExpressionRef value = disjunction();
    if (now().is(":="))
      fail("unsupported_type", now().place, "':=' is not supported; assign in a statement of its own");
    if (!take_if("if")) return value;
    ExpressionRef test = disjunction();
    expect("else", "of the conditional expression");
    ExpressionRef otherwise = expression();
    return made(ExpressionKind::kConditional, place, "", {std::move(test), std::move(value), std::move(otherwise)});
  }

  ExpressionRef lambda() {
    auto function = std::make_shared<Function>();
    function->name = "<lambda>";
    function->place = take().place;
    parameters(*function, ":");
    expect(":", "behind the parameters of a lambda");
    Statement result;
    result.kind = StatementKind::kReturn;
    result.place = now().place;
    result.value = expression();
    auto out = made(ExpressionKind::kLambda, function->place, "", {result.value});
    out->children.clear();
    function->body.push_back(std::move(result));
    out->function = std::move(function);
    return out;
  }

  ExpressionRef disjunction() {
    ExpressionRef left = conjunction();
    while (now().is("or")) {
      const Place place = take().place;
      left = made(ExpressionKind::kBool, place, "or", {left, conjunction()});
    }
    return left;
  }

  ExpressionRef conjunction() {
    ExpressionRef left = negation();
    while (now().is("and")) {
      const Place place = take().place;
      left = made(ExpressionKind::kBool, place, "and", {left, negation()});
    }
    return left;
  }

  ExpressionRef negation() {
    const Nested nested(*this);
    const Place place = now().place;
    if (take_if("not")) return made(ExpressionKind::kUnary, place, "not", {negation()});
    return comparison();
  }

  // The comparison that is here, taken, or nothing.
  std::string comparison_operator() {
    for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (now().kind == TokenKind::kOperator && now().text == op) return take().text;
    }
    if (take_if("in")) return "in";
    if (now().is("not") && next().is("in")) {
      take();
      take();
      return "not in";
    }
    if (take_if("is")) return take_if("not") ? "is not" : "is";
    return "";
  }

  ExpressionRef comparison() {
    const Place place = now().place;
    std::vector<ExpressionRef> operands{binary(1)};
    std::vector<std::string> ops;
    for (std::string op = comparison_operator(); !op.empty(); op = comparison_operator()) {
      ops.push_back(std::move(op));
      operands.push_back(binary(1));
    }
    if (ops.empty()) return operands[0];
    auto out = made(ExpressionKind::kCompare, place, "", std::move(operands));
    out->names = std::move(ops);
    return out;
  }

  static int strength_of(const Token& token) {
    if (token.kind != TokenKind::kOperator) return 0;
    const auto found =
        std::find_if(kBinary.begin(), kBinary.end(), [&](const auto& row) { return row.first == token.text; });
    return found == kBinary.end() ? 0 : found->second;
  }

  ExpressionRef binary(int weakest) {
    ExpressionRef left = unary();
    while (true) {
      const int strength = strength_of(now());
      if (strength == 0 || strength < weakest) return left;
      const Token& op = take();
      left = made(ExpressionKind::kBinary, op.place, op.text, {left, binary(strength + 1)});
    }
  }

  ExpressionRef unary() {
    const Nested nested(*this);
    const Place place = now().place;
    for (const std::string_view op : {"-", "+", "~"}) {
      if (take_if(op)) return made(ExpressionKind::kUnary, place, std::string(op), {unary()});
    }
    ExpressionRef base = primary();
    if (!now().is("**")) return base;
    const Place at = take().place;
    return made(ExpressionKind::kBinary, at, "**", {std::move(base), unary()});
  }

  ExpressionRef primary() {
    ExpressionRef out = atom();
    while (true) {
      const Place place = now().place;
      if (take_if(".")) {
        out = made(ExpressionKind::kAttribute, place, name("a name behind '.'"), {out});
      } else if (take_if("(")) {
        out = call(std::move(out), place);
      } else if (take_if("[")) {
        ExpressionRef index = subscripts();
        expect("]", "behind the index");
        out = made(ExpressionKind::kSubscript, place, "", {std::move(out), std::move(index)});
      } else {
        return out;
      }
    }
  }

  ExpressionRef call(ExpressionRef callee, Place place) {
    std::vector<ExpressionRef> children{std::move(callee)};
    std::vector<std::string> names;
    while (!now().is(")")) {
      const Place at = now().place;
      if (take_if("**")) {
        names.emplace_back("**");
        children.push_back(expression());
      } else if (take_if("*")) {
        names.emplace_back("*");
        children.push_back(expression());
      } else if (now().kind == TokenKind::kName && next().is("=")) {
        names.push_back(name("the name of an argument"));
        if (std::count(names.begin(), names.end(), names.back()) > 1)
          fail("program_syntax", at, "argument '" + names.back() + "' is there twice");
        take();
        children.push_back(expression());
      } else {
        if (std::any_of(names.begin(), names.end(), [](const std::string& n) { return !n.empty() && n != "*"; }))
          fail("program_syntax", at, "a positional argument is behind one with a name");
        names.emplace_back();
        ExpressionRef value = expression();
        if (now().is("for")) value = comprehension(std::move(value), at);
        children.push_back(std::move(value));
      }
      if (!now().is(")")) expect(",", "or ')' behind an argument");
    }
    take();
    auto out = made(ExpressionKind::kCall, place, "", std::move(children));
    out->place = out->children[0]->place;
    out->names = std::move(names);
    return out;
  }

  ExpressionRef subscripts() {
    const Place place = now().place;
    std::vector<ExpressionRef> items;
    bool is_tuple = false;
    do {
      if (now().is("]")) break;
      items.push_back(subscript());
      if (now().is(",")) is_tuple = true;
    } while (take_if(","));
    if (items.empty()) expected("an index");
    if (!is_tuple) return items[0];
    return made(ExpressionKind::kTuple, place, "", std::move(items));
  }

  ExpressionRef subscript() {
    const Place place = now().place;
    ExpressionRef start;
    if (!now().is(":")) start = starred();
    if (!take_if(":")) return start;
    const auto part = [&]() -> ExpressionRef {
      return now().is(":") || now().is("]") || now().is(",") ? nullptr : expression();
    };
    ExpressionRef stop = part();
    ExpressionRef step;
    if (take_if(":")) step = part();
    return made(ExpressionKind::kSlice, place, "", {std::move(start), std::move(stop), std::move(step)});
  }

  // Of several 'for' each but the last has a comprehension of the rest as its element, and joins what those give.
  ExpressionRef comprehension(ExpressionRef element, Place place) {
    const Nested nested(*this);
    expect("for", "of the comprehension");
    std::vector<ExpressionRef> children{std::move(element), target_list()};
    expect("in", "behind the comprehension's variable");
    children.push_back(disjunction());
    while (take_if("if")) children.push_back(disjunction());
    const bool is_outer = now().is("for");
    if (is_outer) children[0] = comprehension(std::move(children[0]), place);
    return made(ExpressionKind::kComprehension, place, is_outer ? "joined" : "", std::move(children));
  }

  ExpressionRef atom() {
    const Nested nested(*this);
    const Token& token = now();
    const Place place = token.place;
    if (token.kind == TokenKind::kNumber) {
      auto out = made(ExpressionKind::kNumber, place, token.text);
      out->number = take().number;
      return out;
    }
    if (token.kind == TokenKind::kString || token.kind == TokenKind::kFormat) return strings(place);
    if (token.is("True") || token.is("False") || token.is("None") || token.is("..."))
      return made(ExpressionKind::kConstant, place, take().text);
    if (token.kind == TokenKind::kName) {
      if (token.is("yield") || token.is("await"))
        fail("unsupported_type", place, "'" + token.text + "' is not supported in programs of NumPy syntax");
      return made(ExpressionKind::kName, place, name("an expression"));
    }
    if (take_if("(")) return bracketed(place);
    if (take_if("[")) return list(place);
    if (take_if("{")) return dict(place);
    const std::string_view before = at_ > 0 ? std::string_view(tokens_[at_ - 1].text) : std::string_view();
    if ((token.is("&") || token.is("|")) && token.text == before)
      fail("program_syntax", place,
           fmt::format("'{0}{0}' is spelt '{1}'; of arrays, element by element, '{0}'", before,
                       before == "&" ? "and" : "or"));
    if (token.kind == TokenKind::kNewline && (before == "+" || before == "-") && at_ > 1 &&
        tokens_[at_ - 2].text == before)
      fail("program_syntax", place,
           fmt::format("expected an expression, got the end of the line; 'x {}= 1' counts", before));
    expected("an expression");
  }

  // One string, or several that are behind each other.
  ExpressionRef strings(Place place) {
    std::string text;
    std::vector<ExpressionRef> fields;
    std::vector<std::string> names;
    while (now().kind == TokenKind::kString || now().kind == TokenKind::kFormat) {
      const Token& token = take();
      for (const FormatField& each : token.fields) {
        names.push_back(std::exchange(text, {}) + each.before);
        names.push_back(each.specification);
        fields.push_back(field(each));
      }
      text += token.text;
    }
    if (fields.empty()) return made(ExpressionKind::kString, place, std::move(text));
    names.push_back(std::move(text));
    auto out = made(ExpressionKind::kFormat, place, "", std::move(fields));
    out->names = std::move(names);
    return out;
  }

  ExpressionRef bracketed(Place place) {
    if (take_if(")")) return made(ExpressionKind::kTuple, place);
    ExpressionRef out = expressions();
    if (now().is("for")) out = comprehension(std::move(out), place);
    expect(")", fmt::format("to close the bracket of line {}", place.line));
    return out;
  }

  ExpressionRef list(Place place) {
    std::vector<ExpressionRef> items;
    while (!now().is("]")) {
      items.push_back(starred());
      if (now().is("for")) {
        ExpressionRef out = comprehension(std::move(items[0]), place);
        expect("]", fmt::format("to close the list of line {}", place.line));
        return out;
      }
      if (!now().is("]")) expect(",", "or ']' in a list");
    }
    take();
    return made(ExpressionKind::kList, place, "", std::move(items));
  }

  ExpressionRef dict(Place place) {
    std::vector<ExpressionRef> items;
    while (!now().is("}")) {
      if (take_if("**")) {  // a dict whose items are taken: there is no key
        items.push_back(nullptr);
        items.push_back(disjunction());
        if (!now().is("}")) expect(",", "or '}' in a dict");
        continue;
      }
      items.push_back(expression());
      if (!now().is(":")) expected("':' behind a key; sets are not supported");
      take();
      items.push_back(expression());
      if (now().is("for") && items.size() == 2) {
        ExpressionRef pairs = comprehension(made(ExpressionKind::kTuple, place, "", std::move(items)), place);
        expect("}", fmt::format("to close the dict of line {}", place.line));
        return made(ExpressionKind::kDict, place, "", {std::move(pairs)});
      }
      if (!now().is("}")) expect(",", "or '}' in a dict");
    }
    take();
    return made(ExpressionKind::kDict, place, "", std::move(items));
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nested_ = 0;
  int64_t statements_ = 0;
};

}  // namespace

Syntax parse_text(std::string_view text) { return Parser(text).run(); }

FunctionRef parse_signature(std::string_view name, std::string_view text) { return Parser(text).signature(name); }

}  // namespace meshd::numpy
