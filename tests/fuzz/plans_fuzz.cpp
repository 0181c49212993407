// Any text as a program is planned or refused with core::Error, behind what parser_fuzz reads: StableHLO for one device
// and for a mesh of four, its derivative, and NumPy syntax traced for arrays.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "service/compile/pipeline.h"
#include "service/compile/rewrite/gradient_text.h"
#include "service/core/error.h"
#include "service/mesh/mesh.h"
#include "service/numpy/numpy.h"
#include "service/sharding/tensor_sharding.h"
#include "service/tensor/shape.h"
#include "tests/fuzz/format.h"

namespace meshd::fuzz {
namespace {

using compile::Compiler;
using compile::LowerRequest;
using compile::ParsedRef;

constexpr size_t kEntries = 4;  // of a compiler's caches
constexpr int kThreads = 2;
mesh::Mesh a_mesh() { return {.axes = {{"x", 2}, {"y", 2}}, .device_ids = {}, .axis_types = {}}; }

// Refusals of one way to plan a program leave the others to be tried; an error of ours goes on.
template <typename Call>
void attempt(const Call& call) {
  try {
    call();
  } catch (const core::Error& error) {
    if (error.code() == core::ErrorCode("internal")) throw;
  }
}

void read_plan(std::string_view text) {
  Compiler compiler(kThreads, kEntries);
  const ParsedRef parsed = compiler.parse("stablehlo", std::string(text));
  attempt([&] {
    LowerRequest alone;
    alone.device_count = std::max<int64_t>(1, compile::device_span(*parsed->module));
    (void)compiler.lower(parsed, alone);
  });
  attempt([&] {
    LowerRequest sharded;
    sharded.mesh = a_mesh();
    sharded.device_count = 4;
    // Rows over x, the other dimensions left to propagation.
    const auto mesh = std::make_shared<const mesh::Mesh>(a_mesh());
    for (size_t i = 0; i < parsed->arguments.size(); ++i) {
      const tensor::Dims& dims = parsed->argument(i).type.tensor.dims;
      sharded.in_shardings.emplace_back();
      if (dims.empty()) continue;
      sharded.in_shardings.back() = sharding::fully_open("mesh", mesh, static_cast<int64_t>(dims.size()));
      sharded.in_shardings.back()->dims.front().axes = {{.axis = 0}};
    }
    (void)compiler.lower(parsed, sharded);
  });
}

void read_gradient(std::string_view text) {
  Compiler compiler(kThreads, kEntries);
  const ParsedRef parsed = compiler.parse("stablehlo", std::string(text));
  const std::string derivative = compiler.gradient_text(*parsed, {.arguments = {0}, .results = {0}});
  // What we have written is a program.
  const auto read_again = [&]() noexcept { return compiler.parse("stablehlo", derivative); };
  (void)read_again();
}

void read_trace(std::string_view text) {
  const numpy::ProgramRef program = numpy::read(text);
  const numpy::ArrayInput kinds[] = {{{tensor::DType::kFloat32, {2, 3}}},
                                     {{tensor::DType::kInt32, {3}}},
                                     {{tensor::DType::kFloat32, {}}, true},
                                     {{tensor::DType::kFloat32, {3, 3}}}};
  numpy::Inputs inputs;
  for (size_t i = 0; i < program->parameters().size(); ++i) {
    const bool is_static = i < program->is_static.size() && program->is_static[i];
    numpy::Input input;
    if (is_static) {
      input.value = numpy::Input::Static(int64_t{2});
    } else {
      input.value = kinds[i % std::size(kinds)];
    }
    inputs.positional.push_back(std::move(input));
  }
  (void)numpy::trace(*program, inputs, nullptr);
}

constexpr Format kFormats[] = {{"plan", read_plan}, {"gradient", read_gradient}, {"trace", read_trace}};

}  // namespace

std::span<const Format> formats() { return kFormats; }

}  // namespace meshd::fuzz
