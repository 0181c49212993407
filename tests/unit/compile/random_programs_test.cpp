// Programs of random ops, shapes and shardings have the same bits with all passes of a plan on, with each of them off,
// and with all off; on one thread and on three, interpreted and as machine code. MESHD_LONG=1 (./dev check-long):
// 20,000 programs. SEED=n: that one alone.
#include <cstdlib>
#include <optional>
#include <random>

#include "service/compile/pipeline.h"
#include "service/compile/stages.h"
#include "tests/unit/compile/plan_bits.h"

namespace meshd::test {
namespace {

using tensor::Dims;

/// The text of a random program. Its floats are f32: products of f64 may have other last bits where a transpose is
/// folded into them (PlanSettings::fold_transposes).
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed) {
    // Few sizes, so that values fit to each other; among them 1 and sizes that no mesh divides.
    constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33, 64, 65, 100, 130};
    for (int64_t& size : sizes_) size = kSizes[below(std::size(kSizes))];
  }

  std::string text() {
    const size_t arguments = 2 + below(3);
    std::string parameters;
    for (size_t i = 0; i < arguments; ++i) {
      const size_t made = add(some_dims(), below(5) == 0 ? "i32" : "f32");
      parameters += (i == 0 ? "" : ", ") + name(made) + ": " + type(made) + some_sharding(made);
    }
    for (size_t ops = 4 + below(16); ops > 0; --ops) add_op();
    // The last value, and some others, so that what they are made of stays.
    std::vector<size_t> results = {values_.size() - 1};
    for (size_t more = below(3); more > 0; --more) results.push_back(below(values_.size()));
    std::string names, types;
    for (const size_t result : results) {
      names += (names.empty() ? "" : ", ") + name(result);
      types += (types.empty() ? "" : ", ") + type(result);
    }
    return "module {\n  sdy.mesh @mesh = <[\"x\"=2, \"y\"=2]>\n  func.func @main(" + parameters + ") -> (" + types +
           ") {\n" + body_ + "    return " + names + " : " + types + "\n  }\n}\n";
  }

 private:
  struct Value {
    Dims dims;
    std::string dtype;
    std::string name;
  };

  size_t below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  bool one_in(size_t n) { return below(n) == 0; }

  Dims some_dims() {
    Dims dims(1 + below(3));
    for (int64_t& dim : dims) dim = sizes_[below(std::size(sizes_))];
    // 3 x 130 x 130 elements at most: many programs rather than large ones.
    while (tensor::element_count(dims) > 50'000) dims.pop_back();
    return dims;
  }
  static std::string type_of(const Dims& dims, const std::string& dtype) {
    std::string out = "tensor<";
    for (const int64_t dim : dims) out += std::to_string(dim) + "x";
    return out + dtype + ">";
  }
  static std::string list(const Dims& dims) {
    std::string out = "[";
    for (const int64_t dim : dims) out += (out.size() == 1 ? "" : ", ") + std::to_string(dim);
    return out + "]";
  }
  std::string type(size_t value) const { return type_of(values_[value].dims, values_[value].dtype); }
  const std::string& name(size_t value) const { return values_[value].name; }

  size_t add(Dims dims, std::string dtype) {
    values_.push_back({std::move(dims), std::move(dtype), "%" + std::to_string(values_.size())});
    return values_.size() - 1;
  }
  /// A value that later ops may read, with the text that makes it.
  size_t make(Dims dims, const std::string& dtype, const std::string& op) {
    const size_t made = add(std::move(dims), dtype);
    body_ += "    " + name(made) + " = " + op + "\n";
    return made;
  }

  std::string shardings(size_t rank) {
    std::vector<std::string> dims(rank);
    for (const char* axis : {"\"x\"", "\"y\""}) {
      const size_t dim = below(rank + 1);
      if (dim < rank) dims[dim] += (dims[dim].empty() ? "" : ", ") + std::string(axis);
    }
    std::string out;
    for (const std::string& dim : dims) out += (out.empty() ? "{" : ", {") + dim + "}";
    return "<@mesh, [" + out + "]>";
  }
  std::string some_sharding(size_t value) {
    return one_in(2) ? " {sdy.sharding = #sdy.sharding" + shardings(values_[value].dims.size()) + "}" : "";
  }

  template <typename Accepts>
  std::optional<size_t> find(const Accepts& accepts) {
    // Late values first, so that ops build on each other.
    for (int tries = 0; tries < 24; ++tries) {
      const size_t at =
          one_in(2) ? below(values_.size()) : values_.size() - 1 - below(std::min<size_t>(4, values_.size()));
      if (accepts(values_[at])) return at;
    }
    return std::nullopt;
  }
  std::optional<size_t> number(size_t least_rank = 0) {
    return find([&](const Value& v) { return v.dtype != "i1" && v.dims.size() >= least_rank; });
  }
  std::optional<size_t> of(const Dims& dims, const std::string& dtype) {
    return find([&](const Value& v) { return v.dims == dims && v.dtype == dtype; });
  }
  size_t float_of(size_t value) {
    if (values_[value].dtype == "f32") return value;
    return make(
        values_[value].dims, "f32",
        "stablehlo.convert " + name(value) + " : (" + type(value) + ") -> " + type_of(values_[value].dims, "f32"));
  }
  size_t constant(const std::string& dtype, const std::string& element) {
    return make({}, dtype, "stablehlo.constant dense<" + element + "> : " + type_of({}, dtype));
  }

  void add_op() {
    switch (below(14)) {
      case 0:
      case 1:
        return unary();
      case 2:
      case 3:
      case 4:
        return binary();
      case 5:
        return choose();
      case 6:
        return broadcast();
      case 7:
      case 8:
        return reduce();
      case 9:
        return transpose();
      case 10:
        return move();
      case 11:
      case 12:
        return product();
      default:
        return one_in(2) ? loop() : constrain();
    }
  }

  void unary() {
    const auto from = number();
    if (!from) return;
    static constexpr const char* kFloat[] = {"tanh", "exponential", "negate",   "abs",   "sqrt", "log_plus_one",
                                             "sign", "cosine",      "logistic", "floor", "rsqrt"};
    static constexpr const char* kInteger[] = {"negate", "abs", "sign", "not"};
    const bool is_float = values_[*from].dtype == "f32";
    const std::string op = is_float ? kFloat[below(std::size(kFloat))] : kInteger[below(std::size(kInteger))];
    make(values_[*from].dims, values_[*from].dtype, "stablehlo." + op + " " + name(*from) + " : " + type(*from));
  }

  std::string binary_op(const std::string& dtype) {
    static constexpr const char* kFloat[] = {"add", "subtract", "multiply", "divide", "maximum", "minimum", "add"};
    static constexpr const char* kInteger[] = {"add", "subtract", "multiply", "maximum", "minimum", "and", "xor"};
    return std::string("stablehlo.") + (dtype == "f32" ? kFloat : kInteger)[below(7)];
  }

  void binary() {
    const auto a = number();
    if (!a) return;
    const auto b = of(values_[*a].dims, values_[*a].dtype);
    make(values_[*a].dims, values_[*a].dtype,
         binary_op(values_[*a].dtype) + " " + name(*a) + ", " + name(b.value_or(*a)) + " : " + type(*a));
  }

  void choose() {
    const auto a = number();
    if (!a) return;
    const size_t b = of(values_[*a].dims, values_[*a].dtype).value_or(*a);
    static constexpr const char* kDirections[] = {"LT", "GE", "EQ", "NE"};
    const Dims dims = values_[*a].dims;
    const size_t mask = make(dims, "i1",
                             std::string("stablehlo.compare ") + kDirections[below(4)] + ", " + name(*a) + ", " +
                                 name(b) + " : (" + type(*a) + ", " + type(b) + ") -> " + type_of(dims, "i1"));
    const size_t c = of(dims, values_[*a].dtype).value_or(b);
    make(dims, values_[*a].dtype,
         "stablehlo.select " + name(mask) + ", " + name(c) + ", " + name(*a) + " : " + type(mask) + ", " + type(*a));
  }

  void broadcast() {
    const auto from = find([](const Value& v) { return v.dims.size() <= 2; });
    if (!from) return;
    const Value value = values_[*from];
    Dims dims, places;
    for (const int64_t dim : value.dims) {
      if (one_in(2)) dims.push_back(sizes_[below(std::size(sizes_))]);
      places.push_back(static_cast<int64_t>(dims.size()));
      dims.push_back(dim == 1 && one_in(2) ? sizes_[below(std::size(sizes_))] : dim);
    }
    if (dims.empty() || one_in(3)) dims.push_back(sizes_[below(std::size(sizes_))]);
    if (tensor::element_count(dims) > 50'000) return;
    make(dims, value.dtype,
         "stablehlo.broadcast_in_dim " + name(*from) + ", dims = " + list(places) + " : (" + type(*from) + ") -> " +
             type_of(dims, value.dtype));
  }

  void reduce() {
    const auto from = number(1);
    if (!from) return;
    const Value value = values_[*from];
    static constexpr const char* kOps[] = {"add", "maximum", "minimum", "add", "multiply"};
    static constexpr const char* kFloat[] = {"0.0", "0xFF800000", "0x7F800000", "0.0", "1.0"};
    static constexpr const char* kInteger[] = {"0", "-2147483648", "2147483647", "0", "1"};
    const size_t op = below(5);
    const size_t zero = constant(value.dtype, value.dtype == "f32" ? kFloat[op] : kInteger[op]);
    // Sums of f32 are short and over the last dims: others may have other last bits where they are fused with what they
    // sum (PlanSettings::fuse). None is over a last dim of few elements, which PlanSettings::split_short_dims may add
    // in another way.
    constexpr int64_t kShort = 256;
    constexpr int64_t kFew = 4;
    const size_t rank = value.dims.size();
    const bool is_float_sum = value.dtype == "f32" && std::string_view(kOps[op]) == "add";
    const size_t first_folded = is_float_sum ? below(rank) : 0;
    if (is_float_sum && tensor::element_count({value.dims.begin() + static_cast<std::ptrdiff_t>(first_folded),
                                               value.dims.end()}) > kShort)
      return;
    if (is_float_sum && value.dims.back() > 1 && value.dims.back() <= kFew) return;
    Dims folded, kept, kept_dims;
    for (size_t d = 0; d < rank; ++d) {
      if (d >= first_folded && (is_float_sum || one_in(2))) {
        folded.push_back(static_cast<int64_t>(d));
      } else {
        kept.push_back(static_cast<int64_t>(d));
        kept_dims.push_back(value.dims[d]);
      }
    }
    if (folded.empty()) return;
    if (!is_float_sum) std::shuffle(folded.begin(), folded.end(), random_);  // a program may list them in any order
    const size_t made = make(kept_dims, value.dtype,
                             "stablehlo.reduce(" + name(*from) + " init: " + name(zero) + ") applies stablehlo." +
                                 kOps[op] + " across dimensions = " + list(folded) + " : (" + type(*from) + ", " +
                                 type(zero) + ") -> " + type_of(kept_dims, value.dtype));
    if (one_in(3)) return;
    // As in softmax and norms: the result meets the rows it came of.
    const size_t wide = make(value.dims, value.dtype,
                             "stablehlo.broadcast_in_dim " + name(made) + ", dims = " + list(kept) + " : (" +
                                 type(made) + ") -> " + type_of(value.dims, value.dtype));
    make(value.dims, value.dtype, binary_op(value.dtype) + " " + name(*from) + ", " + name(wide) + " : " + type(wide));
  }

  size_t transposed(size_t from) {
    const Value value = values_[from];
    Dims order, dims;
    for (size_t d = 0; d < value.dims.size(); ++d) order.push_back(static_cast<int64_t>(d));
    std::shuffle(order.begin(), order.end(), random_);
    for (const int64_t d : order) dims.push_back(value.dims[static_cast<size_t>(d)]);
    return make(dims, value.dtype,
                "stablehlo.transpose " + name(from) + ", dims = " + list(order) + " : (" + type(from) + ") -> " +
                    type_of(dims, value.dtype));
  }
  void transpose() {
    if (const auto from = number(2)) transposed(*from);
  }

  void move() {
    const auto from = number(1);
    if (!from) return;
    const Value value = values_[*from];
    const auto dim = below(value.dims.size());
    Dims dims = value.dims;
    switch (below(5)) {
      case 0: {  // a slice, with steps
        std::string cut;
        for (size_t d = 0; d < dims.size(); ++d) {
          const auto size = static_cast<size_t>(dims[d]);
          const size_t begin = one_in(2) ? below(size) : 0;
          const size_t end = begin + 1 + below(size - begin);
          const size_t step = 1 + below(2);
          cut += (d == 0 ? "" : ", ") + std::to_string(begin) + ":" + std::to_string(end) + ":" + std::to_string(step);
          dims[d] = static_cast<int64_t>((end - begin + step - 1) / step);
        }
        make(dims, value.dtype,
             "stablehlo.slice " + name(*from) + " [" + cut + "] : (" + type(*from) + ") -> " +
                 type_of(dims, value.dtype));
        return;
      }
      case 1: {
        const size_t zero = constant(value.dtype, value.dtype == "f32" ? "1.5" : "3");
        Dims low, high, inside;
        for (int64_t& size : dims) {
          low.push_back(static_cast<int64_t>(below(3)));
          high.push_back(static_cast<int64_t>(below(3)));
          inside.push_back(one_in(4) ? 1 : 0);
          size += low.back() + high.back() + inside.back() * (size - 1);
        }
        make(dims, value.dtype,
             "stablehlo.pad " + name(*from) + ", " + name(zero) + ", low = " + list(low) + ", high = " + list(high) +
                 ", interior = " + list(inside) + " : (" + type(*from) + ", " + type(zero) + ") -> " +
                 type_of(dims, value.dtype));
        return;
      }
      case 2: {
        const size_t other = of(value.dims, value.dtype).value_or(*from);
        dims[dim] *= 2;
        make(dims, value.dtype,
             "stablehlo.concatenate " + name(*from) + ", " + name(other) + ", dim = " + std::to_string(dim) + " : (" +
                 type(*from) + ", " + type(other) + ") -> " + type_of(dims, value.dtype));
        return;
      }
      case 3:
        make(
            dims, value.dtype,
            "stablehlo.reverse " + name(*from) + ", dims = " + list({static_cast<int64_t>(dim)}) + " : " + type(*from));
        return;
      default: {  // neighbours become one, or one becomes a column
        if (dims.size() > 1) {
          const size_t first = below(dims.size() - 1);
          dims[first] *= dims[first + 1];
          dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(first) + 1);
        } else {
          dims.push_back(1);
        }
        make(dims, value.dtype,
             "stablehlo.reshape " + name(*from) + " : (" + type(*from) + ") -> " + type_of(dims, value.dtype));
      }
    }
  }

  /// None of its shards on four devices is a vector: products with one may have other last bits where a transpose is
  /// folded into them (PlanSettings::fold_transposes).
  static bool is_matrix(const Value& v) {
    return v.dtype != "i1" && v.dims.size() == 2 && v.dims[0] > 4 && v.dims[1] > 4;
  }

  void product() {
    std::optional<size_t> left = find(is_matrix);
    if (!left) return;
    if (one_in(2)) left = transposed(*left);
    const size_t a = float_of(*left);
    const Dims dims = values_[a].dims;
    const auto fits = [&](const Value& v) { return is_matrix(v) && (v.dims[0] == dims[1] || v.dims[1] == dims[1]); };
    const size_t b = float_of(find(fits).value_or(a));
    const size_t inner = values_[b].dims[0] == dims[1] ? 0 : 1;  // of b; a's is 1
    const Dims out = {dims[0], values_[b].dims[1 - inner]};
    make(out, "f32",
         "stablehlo.dot_general " + name(a) + ", " + name(b) + ", contracting_dims = [1] x [" + std::to_string(inner) +
             "] : (" + type(a) + ", " + type(b) + ") -> " + type_of(out, "f32"));
  }

  void constrain() {
    const auto from = number(1);
    if (!from) return;
    make(values_[*from].dims, values_[*from].dtype,
         "sdy.sharding_constraint " + name(*from) + " " + shardings(values_[*from].dims.size()) + " : " + type(*from));
  }

  /// A loop over one value, whose body may have a product that no iteration changes.
  void loop() {
    const auto from = find([](const Value& v) { return v.dtype == "f32"; });
    if (!from) return;
    const Dims dims = values_[*from].dims;
    const std::string of_value = type_of(dims, "f32"), number_type = type_of({}, "i32");
    const size_t limit = constant("i32", std::to_string(below(5))), zero = constant("i32", "0");
    const size_t one = constant("i32", "1");
    const size_t added = of(dims, "f32").value_or(*from);
    std::optional<size_t> left;
    if (is_matrix(values_[*from]) && one_in(2))
      left = find([&](const Value& v) { return v.dtype == "f32" && is_matrix(v) && v.dims[0] == dims[0]; });
    std::optional<size_t> right;
    if (left) {
      const int64_t inner = values_[*left].dims[1];
      right = find([&](const Value& v) { return v.dtype == "f32" && v.dims == Dims{inner, dims[1]}; });
    }
    const std::string id = std::to_string(values_.size());
    const std::string count = "%count" + id, turn = "%turn" + id, step = "%step" + id;
    std::string text = "stablehlo.while(" + count + " = " + name(zero) + ", " + turn + " = " + name(*from) +
                       ") : " + number_type + ", " + of_value + "\n    cond {\n      " + step +
                       " = stablehlo.compare LT, " + count + ", " + name(limit) + " : (" + number_type + ", " +
                       number_type + ") -> tensor<i1>\n      stablehlo.return " + step + " : tensor<i1>\n    } do {\n";
    std::string last = turn;
    int number = 0;
    const auto inside = [&](const std::string& op) {
      last = step + "_" + std::to_string(++number);
      text += "      " + last + " = " + op + "\n";
    };
    for (size_t ops = 1 + below(4); ops > 0; --ops) {
      if (one_in(2))
        inside((one_in(2) ? "stablehlo.tanh " : "stablehlo.abs ") + last + " : " + of_value);
      else
        inside(binary_op("f32") + " " + last + ", " + name(added) + " : " + of_value);
    }
    if (right) {
      const std::string before = last;
      inside("stablehlo.dot_general " + name(*left) + ", " + name(*right) + ", contracting_dims = [1] x [0] : (" +
             type(*left) + ", " + type(*right) + ") -> " + of_value);
      inside("stablehlo.add " + before + ", " + last + " : " + of_value);
    }
    const std::string result = last;
    inside("stablehlo.add " + count + ", " + name(one) + " : " + number_type);
    text += "      stablehlo.return " + last + ", " + result + " : " + number_type + ", " + of_value + "\n    }";
    const size_t made = add(dims, "f32");
    body_ += "    " + name(made) + ":2 = " + text + "\n";
    values_[made].name += "#1";
  }

  std::mt19937 random_;
  int64_t sizes_[4] = {};
  std::vector<Value> values_;
  std::string body_;
};

struct Variant {
  std::string name;
  compile::PlanSettings settings;
  int threads;
  double estimated_ns = 0;  // of each step; 0: as planned
};

std::vector<Variant> variants() {
  compile::PlanSettings off;
  for (const compile::PlanPass& pass : compile::kPlanPasses) off.*pass.is_on = false;
  // Products of floats have other bits with this pass, so it is off in all variants.
  compile::PlanSettings on;
  on.small_while_forms = false;
  std::vector<Variant> out = {{"nothing on", off, 1}, {"nothing on", off, 3}, {"all on", on, 1}, {"all on", on, 3}};
  for (const compile::PlanPass& pass : compile::kPlanPasses) {
    compile::PlanSettings settings = on;
    settings.*pass.is_on = false;
    out.push_back({std::string("without ") + pass.name, settings, 3});
  }
  out.push_back({"all on, each step shared", on, 3, 1e6});
  // Two threads have two shards each.
  out.push_back({"all on, shard by shard", on, 2, 59'000});
  return out;
}

compile::PlanRef plan_of(const compile::ParsedProgram& parsed, compile::PlanSettings settings, int threads) {
  compile::LowerRequest request;
  for (const auto& named : parsed.flat->meshes)
    request.device_count = std::max(request.device_count, named.mesh->position_count());
  const partition::LocalProgram local = compile::partition_for(compile::propagate_for(parsed, request), request);
  compile::PlanOptions options;
  static_cast<compile::PlanSettings&>(options) = settings;
  options.threads = threads;
  options.code_after = 0;
  return compile::make_plan(local, options);
}

TEST(RandomPrograms, have_the_same_bits_without_any_pass) {
  const char* const seed_text = std::getenv("SEED");
  const unsigned first = seed_text != nullptr ? static_cast<unsigned>(std::atoi(seed_text)) : 1;
  const unsigned count = seed_text != nullptr ? 1 : std::getenv("MESHD_LONG") != nullptr ? 20'000 : 300;
  Bench one({.device_count = 4, .threads = 1});
  Bench two({.device_count = 4, .threads = 2});
  Bench three({.device_count = 4, .threads = 3});
  const std::vector<Variant> all = variants();
  for (unsigned seed = first; seed < first + count; ++seed) {
    const std::string text = RandomProgram(seed).text();
    SCOPED_TRACE("SEED=" + std::to_string(seed));
    compile::ParsedRef parsed;
    ASSERT_NO_THROW(parsed = compile::Compiler(1, 8).parse("stablehlo", text)) << text;
    std::optional<Bits> expected;
    Bits arguments;
    for (const Variant& variant : all) {
      compile::PlanRef plan = plan_of(*parsed, variant.settings, variant.threads);
      if (variant.estimated_ns > 0) plan = estimated_at(plan, variant.estimated_ns);
      if (!expected) arguments = arguments_of(plan, seed);
      const Bits got = run(variant.threads == 1 ? one : variant.threads == 2 ? two : three, plan, arguments);
      if (!expected) expected = got;
      ASSERT_EQ(difference(got, *expected), "") << variant.name << "\n" << text << to_text(*plan);
    }
  }
}

}  // namespace
}  // namespace meshd::test
