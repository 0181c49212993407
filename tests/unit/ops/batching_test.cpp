// Ops over a batch: the case files of single ops, rewritten for a batch of three (program/batching), against three
// runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "service/core/error.h"
#include "service/ops/op_def.h"
#include "service/program/batching/batched.h"
#include "service/program/parse_stablehlo.h"
#include "service/program/print.h"
#include "service/program/transform/inline_calls.h"
#include "service/program/transform/specialise.h"
#include "tests/support/case_values.h"
#include "tests/support/interpreter.h"
#include "tests/support/not_interpreted.h"

namespace meshd {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBatch = 3;

fs::path folder() { return fs::path(MESHD_SOURCE_DIR) / "tests/cases/ops"; }

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder())) {
    if (entry.path().extension() == ".mlir") out.push_back(entry.path().stem().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// The elements in another order, so that entries of a batch differ.
test::Value rotated(test::Value value, int64_t by) {
  const auto width = static_cast<int64_t>(tensor::size_bytes(value.type.dtype()));
  const auto count = static_cast<int64_t>(value.bytes.size()) / width;
  if (count > 0) std::rotate(value.bytes.begin(), value.bytes.begin() + by % count * width, value.bytes.end());
  return value;
}

test::Value stacked(const std::vector<test::Value>& entries) {
  test::Value out = entries[0];
  out.type.tensor.dims.insert(out.type.tensor.dims.begin(), kBatch);
  out.bytes.clear();
  for (const test::Value& entry : entries) out.bytes.insert(out.bytes.end(), entry.bytes.begin(), entry.bytes.end());
  return out;
}

class BatchedCase : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::ifstream in(folder() / (GetParam() + ".mlir"));
    std::stringstream text;
    for (std::string line; std::getline(in, line);) {
      constexpr std::string_view kArgument = "// argument ";
      if (line.starts_with(kArgument))
        arguments_.push_back(test::value_of(nlohmann::json::parse(line.substr(kArgument.size()))));
      text << line << '\n';
    }
    flat_ = program::specialise(program::inline_calls(*program::parse_stablehlo(text.str())));
  }

  /// Compares where the program can be written over a batch of these arguments; whether it can.
  bool compare(const std::vector<bool>& is_batched) {
    const auto batched = program::batched(flat_, is_batched, kBatch);
    if (!batched) return false;
    const std::string text = program::print_generic(*batched);
    EXPECT_NO_THROW(program::parse_stablehlo(text)) << text;
    std::vector<std::vector<test::Value>> each(kBatch);
    std::vector<std::vector<test::Value>> by_argument(arguments_.size());
    for (int64_t k = 0; k < kBatch; ++k) {
      std::vector<test::Value> now = arguments_;
      for (size_t i = 0; i < now.size(); ++i) {
        if (is_batched[i]) now[i] = rotated(now[i], k);
        by_argument[i].push_back(now[i]);
      }
      each[static_cast<size_t>(k)] = test::interpret(flat_, std::move(now));
    }
    std::vector<test::Value> given;
    for (size_t i = 0; i < arguments_.size(); ++i)
      given.push_back(is_batched[i] ? stacked(by_argument[i]) : arguments_[i]);
    const std::vector<test::Value> results = test::interpret(*batched, std::move(given));
    for (size_t r = 0; r < results.size(); ++r) {
      std::vector<test::Value> expected;
      for (const auto& entry : each) expected.push_back(entry[r]);
      EXPECT_EQ(test::difference(results[r], stacked(expected), {{"rtol", 1e-5}, {"atol", 1e-5}}), "")
          << "result " << r << " of\n"
          << text;
    }
    return true;
  }

  ir::Module flat_;
  std::vector<test::Value> arguments_;
};

TEST_P(BatchedCase, gives_for_each_entry_what_the_program_gives) {
  const size_t count = arguments_.size();
  std::vector<std::vector<bool>> choices{std::vector<bool>(count, true)};
  for (size_t i = 0; i < count && count > 1; ++i) {
    choices.emplace_back(count, false);
    choices.back()[i] = true;
  }
  int compared = 0;
  try {
    if (count > 0) {
      for (const std::vector<bool>& choice : choices) compared += compare(choice) ? 1 : 0;
    }
  } catch (const core::Error& error) {
    const std::string_view reason = test::why_not_interpreted(error.detail());
    if (reason.empty()) throw;
    GTEST_SKIP() << reason;
  }
  if (compared == 0) GTEST_SKIP() << "an op without a rule for batches";
}

INSTANTIATE_TEST_SUITE_P(Ops, BatchedCase, testing::ValuesIn(names()), [](const auto& name) { return name.param; });

}  // namespace
}  // namespace meshd
