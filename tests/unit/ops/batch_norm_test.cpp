// Batch normalisation against formulas in double, and its gradient against differences.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/row_runner.h"

namespace meshd::test {
namespace {

using tensor::Dims;

constexpr double kEpsilon = 0.01;

Instance instance(const char* name, int64_t feature) {
  return {.def = ops::find_op(name),
          .attributes = {{"epsilon", ir::Attribute{ir::FloatAttr{kEpsilon, "f32"}}},
                         {"feature_index", int_attribute(feature)}}};
}

std::vector<float> randoms(std::mt19937& random, int64_t count, float low, float high) {
  std::uniform_real_distribution<float> between(low, high);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) value = between(random);
  return out;
}

struct Statistics {
  std::vector<double> mean, variance;
};
Statistics statistics(const Dims& shape, size_t feature, const std::vector<double>& values) {
  const auto features = static_cast<size_t>(shape[feature]);
  Statistics out{std::vector<double>(features), std::vector<double>(features)};
  const double count = static_cast<double>(values.size()) / static_cast<double>(features);
  for_each_index(shape, [&](const Dims& at) {
    out.mean[static_cast<size_t>(at[feature])] += values[static_cast<size_t>(position(shape, at))] / count;
  });
  for_each_index(shape, [&](const Dims& at) {
    const auto f = static_cast<size_t>(at[feature]);
    const double distance = values[static_cast<size_t>(position(shape, at))] - out.mean[f];
    out.variance[f] += distance * distance / count;
  });
  return out;
}

const std::vector<std::pair<Dims, int64_t>> kShapes = {{{6, 3}, 1},       {{4, 5, 70}, 1},   {{3, 200}, 1}, {{5}, 0},
                                                       {{2, 3, 1500}, 1}, {{7, 2, 3, 4}, 0}, {{2, 3, 4}, 2}};

TEST(BatchNorm, training_normalises_by_the_batchs_own_statistics) {
  std::mt19937 random(1);
  for (const auto& [shape, feature] : kShapes) {
    const auto f = static_cast<size_t>(feature);
    const std::vector<float> x = randoms(random, tensor::element_count(shape), -3, 5);
    const std::vector<float> scale = randoms(random, shape[f], 0.5F, 2);
    const std::vector<float> offset = randoms(random, shape[f], -1, 1);
    const auto got =
        instance("stablehlo.batch_norm_training", feature)
            .run({f32(shape, x), f32({shape[f]}, scale), f32({shape[f]}, offset)}, Instance::Cut::kBackwards);
    const Statistics expected = statistics(shape, f, {x.begin(), x.end()});
    for (size_t i = 0; i < scale.size(); ++i) {
      EXPECT_NEAR(got[1].values<float>()[i], expected.mean[i], 1e-6);
      EXPECT_NEAR(got[2].values<float>()[i], expected.variance[i], 1e-5);
    }
    const std::vector<float> y = got[0].values<float>();
    for_each_index(shape, [&](const Dims& at) {
      const auto i = static_cast<size_t>(position(shape, at));
      const auto k = static_cast<size_t>(at[f]);
      const double wanted =
          (x[i] - expected.mean[k]) / std::sqrt(expected.variance[k] + kEpsilon) * scale[k] + offset[k];
      ASSERT_NEAR(y[i], wanted, 1e-5);
    });
    // The same by given statistics.
    const auto given = instance("stablehlo.batch_norm_inference", feature)
                           .run({f32(shape, x), f32({shape[f]}, scale), f32({shape[f]}, offset), got[1], got[2]});
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(given[0].values<float>()[i], y[i], 1e-5);
  }
}

TEST(BatchNorm, gradients_are_those_of_differences) {
  std::mt19937 random(2);
  for (const auto& [shape, feature] : kShapes) {
    const auto f = static_cast<size_t>(feature);
    const auto features = static_cast<size_t>(shape[f]);
    const std::vector<float> x = randoms(random, tensor::element_count(shape), -3, 5);
    const std::vector<float> scale = randoms(random, shape[f], 0.5F, 2);
    const std::vector<float> weight = randoms(random, tensor::element_count(shape), -1, 1);
    // What the gradients are of: the weighted sum of the normalised array.
    const auto loss = [&](const std::vector<double>& values, const std::vector<double>& scales,
                          double offset_of_first) {
      const Statistics s = statistics(shape, f, values);
      double sum = 0;
      for_each_index(shape, [&](const Dims& at) {
        const auto i = static_cast<size_t>(position(shape, at));
        const auto k = static_cast<size_t>(at[f]);
        const double y = (values[i] - s.mean[k]) / std::sqrt(s.variance[k] + kEpsilon) * scales[k];
        sum += weight[i] * (y + (k == 0 ? offset_of_first : 0));
      });
      return sum;
    };
    const std::vector<double> values(x.begin(), x.end());
    const std::vector<double> scales(scale.begin(), scale.end());
    const Statistics s = statistics(shape, f, values);
    const auto got =
        instance("stablehlo.batch_norm_grad", feature)
            .run({f32(shape, x), f32({shape[f]}, scale),
                  f32({shape[f]}, std::vector<float>(s.mean.begin(), s.mean.end())),
                  f32({shape[f]}, std::vector<float>(s.variance.begin(), s.variance.end())), f32(shape, weight)});
    constexpr double kStep = 1e-5;
    for (size_t i = 0; i < values.size(); i += values.size() / 5 + 1) {
      std::vector<double> up = values;
      std::vector<double> down = values;
      up[i] += kStep;
      down[i] -= kStep;
      EXPECT_NEAR(got[0].values<float>()[i], (loss(up, scales, 0) - loss(down, scales, 0)) / (2 * kStep), 1e-4);
    }
    for (size_t k = 0; k < features; k += features / 3 + 1) {
      std::vector<double> up = scales;
      std::vector<double> down = scales;
      up[k] += kStep;
      down[k] -= kStep;
      EXPECT_NEAR(got[1].values<float>()[k], (loss(values, up, 0) - loss(values, down, 0)) / (2 * kStep), 1e-3);
    }
    EXPECT_NEAR(got[2].values<float>()[0], (loss(values, scales, kStep) - loss(values, scales, -kStep)) / (2 * kStep),
                1e-3);
  }
}

}  // namespace
}  // namespace meshd::test
