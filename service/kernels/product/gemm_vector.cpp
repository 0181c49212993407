// Products of a matrix and a vector, f32 and f64, by loops of our own (vector_product.h).
#include "service/kernels/product/gemm_plans.h"
#include "service/kernels/product/vector_product.h"

namespace meshd::kernels {
namespace {

struct GemvByLoops : Gemm::Plan {
  VectorForm form;
  VectorLoop multiply = nullptr;

  void run(const std::byte* a, const std::byte* b, std::byte* c, std::byte* /*scratch*/, core::Checkpoint* checkpoint,
           PackedOperand* /*kept*/) const override {
    multiply(form.shape, form.matrix_is_b ? b : a, form.matrix_is_b ? a : b, c, checkpoint);
  }
};

}  // namespace

bool takes_vector_loops(const GemmSpec& spec) {
  // A block of one column of a wider c is not a vector: results would be written next to each other.
  const bool is_next = spec.m == 1 || spec.c_row_stride() == 1;
  const bool has_loop = spec.in == spec.out && vector_loop(spec.in, VectorOrder::kDots) != nullptr;
  return is_next && has_loop && !spec.adds && vector_form(spec).has_value();
}

GemmPlan plan_vector(const GemmSpec& spec) {
  auto plan = std::make_shared<GemvByLoops>();
  plan->form = *vector_form(spec);
  plan->multiply = vector_loop(spec.in, plan->form.order);
  return {std::move(plan), 0};
}

}  // namespace meshd::kernels
