#include "service/program/gradient/gradient.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "service/core/error.h"
#include "service/ir/walk.h"
#include "service/ops/collective/sdy_collectives.h"
#include "service/program/analysis/value_facts.h"
#include "service/program/gradient/backward.h"
#include "service/program/gradient/dead_ops.h"

namespace meshd::program {
namespace {

void expect(bool holds, const std::string& message) {
  if (!holds) throw core::Error("invalid_argument", message);
}

void check(const ir::Function& main, const GradientRequest& request) {
  for (const size_t i : request.arguments) {
    expect(i < main.arguments.size() && has_cotangents(main.arguments[i].type),
           fmt::format("argument {} has no derivative: it must be of a floating-point or complex type", i));
  }
  for (const size_t i : request.results) {
    expect(i < main.results.size() && has_cotangents(main.results[i].type),
           fmt::format("result {} has no derivative: it must be of a floating-point or complex type", i));
    const ir::Type& type = main.results[i].type;
    expect(request.takes_cotangents || (type.rank() == 0 && tensor::is_float(type.dtype())),
           fmt::format("result {} is {}: a gradient is that of real scalars; with \"cotangents\": true the program "
                       "takes the cotangents of its results as further arguments",
                       i, ir::to_string(type)));
  }
}

// A donated argument would be gone when the gradient needs it, and results are in other places.
void drop_donation(ir::Parameter& parameter) {
  parameter.aliases_output.reset();
  parameter.is_donor = false;
  std::erase_if(parameter.attributes, [](const ir::NamedAttribute& entry) {
    return entry.name == "tf.aliasing_output" || entry.name == "jax.buffer_donor";
  });
}

ir::Parameter parameter_of(const ir::Type& type) {
  ir::Parameter out;
  out.type = type;
  return out;
}

class GradientProgram {
 public:
  GradientProgram(const ir::Module& flat, const GradientRequest& request)
      : request_(request), module_(flat), main_(module_.main()), original_(flat.main()) {
    ops::drop_call_edges(module_);
    module_.inlined_calls.clear();
    ir::walk(main_.body, [](ir::Op& op) { op.location.frame = -1; });
  }

  ir::Module run() {
    check(main_, request_);
    std::vector<ir::ValueId> varied;
    for (const size_t i : request_.arguments) varied.push_back(main_.body.arguments[i]);
    ValueFacts facts(main_, varied);
    ir::Op terminator = std::move(main_.body.ops.back());
    main_.body.ops.pop_back();
    std::vector<ir::Op> tail;
    ops::Writer writer(main_, tail, terminator);
    Cotangents sums = seeds(terminator, writer);
    Backward(main_, facts).run(main_.body.ops, sums, tail);
    std::vector<ir::ValueId> gradients;
    for (const ir::ValueId id : varied) {
      const auto found = sums.find(id);
      gradients.push_back(found == sums.end() ? writer.zero(main_.type_of(id).tensor) : found->second);
    }
    std::move(tail.begin(), tail.end(), std::back_inserter(main_.body.ops));
    set_results(std::move(terminator), gradients);
    remove_dead_ops(main_, main_.body, UnreadEffects::kKept);
    for (ir::Parameter& argument : main_.arguments) drop_donation(argument);
    return std::move(module_);
  }

 private:
  Cotangents seeds(const ir::Op& terminator, ops::Writer& writer) {
    Cotangents sums;
    for (const size_t i : request_.results) {
      const ir::ValueId result = terminator.operands[i];
      const ir::Type type = main_.type_of(result);
      ir::ValueId seed = ir::kNoValue;
      if (request_.takes_cotangents) {
        seed = main_.add_value(type);
        main_.body.arguments.push_back(seed);
        main_.arguments.push_back(parameter_of(type));
      } else {
        seed = writer.splat(type, 1);
      }
      const auto [found, is_new] = sums.emplace(result, seed);
      if (!is_new) found->second = writer.add("stablehlo.add", {found->second, seed});
    }
    return sums;
  }

  void set_results(ir::Op terminator, const std::vector<ir::ValueId>& gradients) {
    const std::vector<ir::ValueId> before = std::exchange(terminator.operands, {});
    std::vector<ir::Parameter> results;
    for (size_t i = 0; i < before.size(); ++i) {
      if (!request_.keeps_results && !original_.results[i].is_token) continue;
      terminator.operands.push_back(before[i]);
      results.push_back(main_.results[i]);
    }
    for (const ir::ValueId id : gradients) {
      terminator.operands.push_back(id);
      results.push_back(parameter_of(main_.type_of(id)));
    }
    main_.results = std::move(results);
    main_.body.ops.push_back(std::move(terminator));
  }

  const GradientRequest& request_;
  ir::Module module_;
  ir::Function& main_;
  const ir::Function& original_;
};

}  // namespace

ir::Module gradient(const ir::Module& flat, const GradientRequest& request) {
  return GradientProgram(flat, request).run();
}

}  // namespace meshd::program
