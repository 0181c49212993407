// The syntax of a NumPy program as plain data: what the parser makes and the tracer walks. One node type for
// expressions and one for statements; what their fields mean is said at their kinds.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace meshd::numpy {

/// 1-based place in the text.
struct Place {
  int32_t line = 0;
  int32_t column = 0;
};

enum class ExpressionKind : uint8_t {
  kName,           ///< text
  kNumber,         ///< number
  kString,         ///< text
  kFormat,         ///< an f-string. children: its fields; names: text, format, text, format, ..., text
  kConstant,       ///< text: True, False, None or ...
  kTuple,          ///< children
  kList,           ///< children
  kDict,           ///< children: key, value, key, value
  kUnary,          ///< text: + - ~ not; one child
  kBinary,         ///< text: + - * / // % ** @ & | ^ << >>; two children
  kCompare,        ///< names: the operators; one child more than these
  kBool,           ///< text: and, or; two children
  kConditional,    ///< children: test, where true, where false
  kCall,           ///< children: callee, arguments; names (one for each argument): "", a keyword, "*" or "**"
  kAttribute,      ///< text; one child
  kSubscript,      ///< children: value, index
  kSlice,          ///< three children, null where left out
  kStarred,        ///< one child
  kLambda,         ///< function, whose body is one return
  kComprehension,  ///< children: element, target, iterable, conditions; text "joined": elements are lists that it joins
};

struct Expression;
struct Function;
using ExpressionRef = std::shared_ptr<const Expression>;
using FunctionRef = std::shared_ptr<const Function>;

/// A number of the text: an integer, a float, or an imaginary number.
using Number = std::variant<int64_t, double, std::complex<double>>;

struct Expression {
  ExpressionKind kind = ExpressionKind::kName;
  Place place;
  std::string text;
  Number number = int64_t{0};
  std::vector<ExpressionRef> children;
  std::vector<std::string> names;
  FunctionRef function;
  int depth = 1;  ///< of the nodes below, this one included
};

enum class StatementKind : uint8_t {
  kExpression,       ///< value
  kAssign,           ///< targets = value
  kAugmentedAssign,  ///< targets[0] text= value
  kReturn,           ///< value, or null
  kIf,               ///< value: test; body, otherwise
  kWhile,            ///< value: test; body
  kFor,              ///< targets[0] in value; body
  kFunction,         ///< function
  kAssert,           ///< value; targets[0]: the message, where there is one
  kRaise,            ///< text: the error's name; value: the message, or null
  kPass,
  kBreak,
  kContinue,
};

struct Statement;
using Block = std::vector<Statement>;

struct Statement {
  StatementKind kind = StatementKind::kPass;
  Place place;
  std::string text;
  std::vector<ExpressionRef> targets;
  ExpressionRef value;
  Block body;
  Block otherwise;
  FunctionRef function;
  int64_t size = 1;  ///< of a loop: how many statements it has, all that is in its body included
};

enum class ParameterKind : uint8_t { kPositionalOnly, kPositional, kArguments, kKeywordOnly, kKeywords };

/// A parameter of a function: `x`, `x=1`, `*args`, `**kwargs`.
struct FunctionParameter {
  std::string name;
  ParameterKind kind = ParameterKind::kPositional;
  ExpressionRef otherwise;  ///< the default; null: none
  Place place;
};

/// A def or a lambda.
struct Function {
  std::string name;
  Place place;
  std::vector<FunctionParameter> parameters;
  std::vector<ExpressionRef> decorators;
  Block body;
};

/// A name that an import makes, with what it means: {"jnp", "jax.numpy"}.
struct Import {
  std::string name;
  std::string path;
  Place place;
};

/// A program: what is at the top of the text, in order. Imports are kept apart.
struct Syntax {
  std::vector<Import> imports;
  Block body;
};

}  // namespace meshd::numpy
