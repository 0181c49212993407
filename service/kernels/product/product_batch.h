// Many products of small matrices of one shape, such as dot products of the rows of two arrays: loops of our own run
// through the batch, where a call for each product would take longer than the product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "service/kernels/product/gemm.h"

namespace meshd::kernels {

/// Products that lie at regular distances: elements from a matrix a, or b, to the next. Results follow each other.
struct BatchSpec {
  GemmSpec one;
  int64_t a_step = 0;
  int64_t b_step = 0;
};

/// A batch made ready. Immutable; any thread. A product has the same bits at each place in the batch.
class ProductBatch {
 public:
  /// None where products of this type or shape are as fast one by one.
  static std::optional<ProductBatch> of(const BatchSpec& spec);

  /// `count` products, from the ones that are given.
  void run(const std::byte* a, const std::byte* b, std::byte* c, int64_t count) const;

  /// How the products are made.
  struct Loop {
    virtual ~Loop() = default;
    virtual void run(const std::byte* a, const std::byte* b, std::byte* c, int64_t count) const = 0;
  };

 private:
  explicit ProductBatch(std::shared_ptr<const Loop> loop) : loop_(std::move(loop)) {}
  std::shared_ptr<const Loop> loop_;
};

}  // namespace meshd::kernels
