// #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=32, k=16} reduction={k}, custom>.
#include <fmt/core.h>

#include <algorithm>

#include "service/program/parse/parser.h"
#include "service/tensor/sizes.h"

namespace meshd::program {
namespace {

constexpr int kLetterCount = 'z' - 'i' + 1;
constexpr int kMaxFactors = 4096;

/// Factor numbers of "ij" or "z_1z_2"; empty when the word is something else.
std::vector<int> split_factors(std::string_view word) {
  std::vector<int> out;
  size_t i = 0;
  while (i < word.size()) {
    if (word[i] < 'i' || word[i] > 'z') return {};
    int factor = word[i] - 'i';
    ++i;
    if (i < word.size() && word[i] == '_') {
      if (factor != kLetterCount - 1) return {};
      int suffix = 0;
      const size_t digits = ++i;
      while (i < word.size() && word[i] >= '0' && word[i] <= '9' && suffix < kMaxFactors)
        suffix = suffix * 10 + (word[i++] - '0');
      if (i == digits || suffix < 1 || suffix >= kMaxFactors) return {};
      factor = kLetterCount - 1 + suffix;
    }
    out.push_back(factor);
  }
  return out;
}

}  // namespace

std::vector<int> Parser::factor_names() {
  std::vector<int> out;
  const Token word = expect(TokenKind::kWord, "names of factors");
  out = split_factors(word.text);
  if (out.empty())
    fail("program_syntax", word, "expected names of factors (i to z, z_1, z_2, ...), got " + describe(word));
  return out;
}

std::vector<sharding::TensorFactors> Parser::factor_mappings() {
  std::vector<sharding::TensorFactors> out;
  list('(', ')', "around the mappings of a sharding rule", [&] {
    sharding::TensorFactors tensor;
    list('[', ']', "around the factors of a tensor", [&] { tensor.push_back(factor_names()); });
    out.push_back(std::move(tensor));
  });
  return out;
}

sharding::FactorRule Parser::factor_rule() {
  const Token start = expect('<', "at the start of a sharding rule");
  sharding::FactorRule rule;
  rule.operands = factor_mappings();
  expect(TokenKind::kArrow, "'->' in a sharding rule");
  rule.results = factor_mappings();
  const auto each_factor = [&](auto&& apply) {
    for (auto* side : {&rule.operands, &rule.results}) {
      for (auto& tensor : *side) {
        for (auto& dim : tensor) {
          for (int& factor : dim) apply(factor);
        }
      }
    }
  };
  if (at('{')) {
    list('{', '}', "around the sizes of factors", [&] {
      const Token name = token_;
      const std::vector<int> factor = factor_names();
      if (factor.size() != 1 || factor[0] != static_cast<int>(rule.factors.size())) {
        fail("invalid_program", name, "factors must be listed in order: i, j, k, ...");
      }
      expect('=', "behind the name of a factor");
      const Token number = token_;
      const int64_t size = signed_integer("the size of a factor");
      if (size < 0) fail("invalid_program", number, fmt::format("the size of a factor is 0 or more, got {}", size));
      rule.factors.push_back({size, sharding::FactorKind::kPassThrough, false});
    });
  }
  const auto count = static_cast<int>(rule.factors.size());
  std::vector<bool> used(rule.factors.size());
  each_factor([&](int factor) {
    if (factor >= count) fail("invalid_program", start, "the sharding rule uses a factor that has no size");
    used[static_cast<size_t>(factor)] = true;
  });
  for (const bool is_used : used) {
    if (!is_used) fail("invalid_program", start, "the sharding rule has a factor that no operand and no result uses");
  }
  // A tensor has each factor once, and as many elements as can be counted.
  const auto check_tensor = [&](const sharding::TensorFactors& factors) {
    std::vector<bool> seen(rule.factors.size());
    tensor::Dims sizes;
    for (const std::vector<int>& dim : factors) {
      for (const int factor : dim) {
        const auto place = static_cast<size_t>(factor);
        if (seen[place]) fail("invalid_program", start, "the sharding rule has a factor twice in one tensor");
        seen[place] = true;
        sizes.push_back(rule.factors[place].size);
      }
    }
    if (!tensor::sizes_fit({tensor::DType::kInt8, sizes}))
      fail("invalid_program", start, "the sizes of a tensor's factors do not fit in 63 bits together");
  };
  for (const auto* side : {&rule.operands, &rule.results}) std::for_each(side->begin(), side->end(), check_tensor);
  const auto mark = [&](auto&& apply) {
    expect('=', "behind the kind of factors");
    list('{', '}', "around factors", [&] {
      const Token name = token_;
      for (const int factor : factor_names()) {
        if (factor >= count) fail("invalid_program", name, "unknown factor " + describe(name));
        apply(rule.factors[static_cast<size_t>(factor)]);
      }
    });
  };
  while (token_.is(TokenKind::kWord)) {
    const Token kind = take();
    if (kind.text == "reduction") {
      mark([](sharding::Factor& factor) { factor.kind = sharding::FactorKind::kReduction; });
    } else if (kind.text == "need_replication") {
      mark([](sharding::Factor& factor) { factor.kind = sharding::FactorKind::kNeedReplication; });
    } else if (kind.text == "permutation") {
      mark([](sharding::Factor& factor) { factor.kind = sharding::FactorKind::kPermutation; });
    } else if (kind.text == "blocked_propagation") {
      mark([](sharding::Factor& factor) { factor.blocked = true; });
    } else {
      fail("program_syntax", kind, "unknown kind of factors " + describe(kind));
    }
  }
  if (accept(',')) {
    expect_word("custom", "at the end of a sharding rule");
    rule.is_custom = true;
  }
  expect('>', "at the end of a sharding rule");
  return rule;
}

}  // namespace meshd::program
