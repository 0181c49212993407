// A loop whose calls have their pointers bound (compile/plan/bound_whiles.h), while it is executed by one thread.
//
// 1. The calls of an iteration are bound to the pointers that the run has now; then slots are exchanged in a copy of
//    its table, and the calls of the next iteration are bound to those. After the second one all must be where it was.
// 2. run() goes through the calls of the one and of the other in turn.
// Loops inside are bound with each of the two, for the pointers that they find.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "service/compile/plan/plan.h"
#include "service/core/checkpoint.h"
#include "service/device/small_while_blocks.h"
#include "service/kernels/fused/repeated_loop.h"
#include "service/kernels/product/packed_operand.h"
#include "service/ops/kernel_interface.h"

namespace meshd::device {

/// One thread.
class BoundWhile {
 public:
  /// Outlives the loop.
  struct Context {
    const compile::Plan& plan;
    std::byte* scratch;  ///< of a step; behind it workspaces
    core::Checkpoint& checkpoint;
  };
  /// `table`: the run's pointers where the loop begins, by slot, then shard. The same afterwards.
  BoundWhile(const Context& context, const compile::Step& loop, std::vector<std::byte*>& table);
  BoundWhile(const BoundWhile&) = delete;
  BoundWhile& operator=(const BoundWhile&) = delete;

  /// False: after two iterations slots are elsewhere. It must not be run.
  [[nodiscard]] bool is_periodic() const { return is_periodic_; }

  struct Outcome {
    int64_t iterations = 0;
    bool is_over = false;  ///< the condition is false
  };
  /// At most `most` iterations. Passes the checkpoint behind each.
  Outcome run(int64_t most);
  /// What was executed by loops and branches inside, since it was made.
  [[nodiscard]] compile::LoopCost inner_cost() const;
  /// Calls `exchange` for each loop that leaves its slots exchanged after one iteration of `loop`, those inside first.
  static void for_each_exchange(const compile::Plan& plan, const compile::Step& loop,
                                const std::function<void(const compile::Step&)>& exchange);

 private:
  struct KernelCall {
    const ops::PreparedKernel* kernel = nullptr;
    ops::KernelCall call;
    bool starts_packing = false;                      ///< call.kept is of an earlier execution
    std::unique_ptr<kernels::RepeatedLoop> repeated;  ///< of a small fused loop: makes the call; null: the kernel does
  };
  struct CollectiveCall {
    const compile::Collective* collective = nullptr;
    compile::CollectiveCall call;
  };
  struct InnerLoop {
    const compile::Step* step = nullptr;
    std::unique_ptr<SmallWhileBlocks> small;  ///< null: bound
    std::unique_ptr<BoundWhile> bound;
    int64_t executions = 0;
    int64_t iterations = 0;
  };
  struct Branches;
  using Call = std::variant<KernelCall, CollectiveCall, InnerLoop, std::unique_ptr<Branches>>;
  struct Branches {
    struct Branch {
      std::vector<Call> calls;
      compile::LoopCost cost;  // without what loops and branches in it execute
      int64_t executions = 0;
    };
    bool is_bool = false;  // true is branch 0
    const std::byte* which = nullptr;
    std::vector<Branch> all;
  };
  struct Iteration {
    std::vector<Call> condition;
    std::vector<Call> body;
    const std::byte* predicate = nullptr;
  };

  Iteration bind_iteration(std::vector<std::byte*>& table);
  void bind(const compile::Step& step, std::vector<std::byte*>& table, std::vector<Call>& to);
  void bind_calls(const compile::Step& step, const std::vector<std::byte*>& table, std::vector<Call>& to);
  void bind_branches(const compile::Step& step, std::vector<std::byte*>& table, std::vector<Call>& to);
  void bind_loop(const compile::Step& step, std::vector<std::byte*>& table, std::vector<Call>& to);
  std::byte** add_pointers(size_t count);
  void execute(std::vector<Call>& calls);
  void execute(InnerLoop& inner);
  void execute(Branches& branches);
  static void add_inner_cost(const std::vector<Call>& calls, compile::LoopCost& to);

  const Context context_;
  const compile::Step& loop_;
  std::vector<std::unique_ptr<std::byte*[]>> pointers_;  // of calls
  std::vector<std::unique_ptr<kernels::PackedOperand>> kept_;
  int repeated_ = 0;  // calls that keep registers
  std::array<Iteration, 2> iterations_;
  size_t count_ = 1;  // of those that differ
  bool is_periodic_ = true;
};

}  // namespace meshd::device
