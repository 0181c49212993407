#include "service/compile/plan/liveness.h"

#include <algorithm>

namespace meshd::compile {
namespace {

class Walker {
 public:
  explicit Walker(PlanBuilder& builder) : builder_(builder), values_(builder.values.size()) {
    out_.of.resize(builder.values.size());
    out_.reserved.assign(builder.values.size(), {0, -1});
  }

  Liveness run() {
    for (LocalId id = 0; id < static_cast<LocalId>(builder_.values.size()); ++id) {
      if (builder_.value(id).argument >= 0) define(id, -1);
    }
    block(builder_.body);
    for (const LocalId id : builder_.results) use(id, kForever);
    for (LocalId id = 0; id < static_cast<LocalId>(builder_.values.size()); ++id) close(id);
    return std::move(out_);
  }

 private:
  struct Loop {
    BuilderStep* step = nullptr;
    std::vector<std::pair<LocalId, size_t>> outside;  // values from outside that are read inside: alive to the end
  };
  struct Info {
    std::vector<int64_t> definitions;
    std::vector<int64_t> uses;
    size_t depth = 0;             // loops around the definition
    BuilderStep* loop = nullptr;  // carried by this loop
    BuilderStep* branches = nullptr;
  };

  Info& info(LocalId id) { return values_[static_cast<size_t>(id)]; }

  void define(LocalId id, int64_t time) {
    Info& value = info(id);
    if (value.definitions.empty() && value.branches == nullptr) value.depth = loops_.size();
    value.definitions.push_back(time);
  }

  void use(LocalId id, int64_t time) {
    const LocalId root = builder_.memory_of(id);
    Info& value = info(root);
    value.uses.push_back(time);
    size_t depth = value.depth;
    // Inside of its own loop a variable is defined anew in each iteration.
    if (value.loop != nullptr && loops_.size() > depth && loops_[depth].step == value.loop) ++depth;
    if (loops_.size() > depth) loops_[depth].outside.emplace_back(root, value.uses.size() - 1);
  }

  void block(BuilderBlock& body) {
    body.begin = ++clock_;
    for (BuilderStep& step : body.steps) {
      if (step.kind == StepKind::kWhile) {
        loop(step);
      } else if (step.kind == StepKind::kCase) {
        branches(step);
      } else {
        leaf(step);
      }
    }
    body.end = ++clock_;
    together_ = false;
    for (const LocalId id : body.results) use(id, body.end);
  }

  void leaf(BuilderStep& step) {
    if (!step.is_together || !together_) ++clock_;
    together_ = step.is_together;
    step.begin = step.end = clock_;
    for (const LocalId id : step.operands) use(id, step.begin);
    for (const LocalId id : step.results) define(id, step.begin);
    if (step.is_copy) {
      pair(step.operands[0], step.results[0], step);
      return;
    }
    for (const auto& [operand, result] : step.kernel.in_place) {
      if (is_read_twice(step, static_cast<size_t>(operand))) continue;
      pair(step.operands[static_cast<size_t>(operand)], step.results[static_cast<size_t>(result)], step);
    }
  }

  // Another operand aliases the same bytes, which must not change while they are read.
  bool is_read_twice(const BuilderStep& step, size_t operand) const {
    const LocalId root = builder_.memory_of(step.operands[operand]);
    return std::count_if(step.operands.begin(), step.operands.end(),
                         [&](LocalId id) { return builder_.memory_of(id) == root; }) > 1;
  }

  // Shard i of the result may share the memory of shard i of the operand.
  void pair(LocalId operand, LocalId result, const BuilderStep& step) {
    const auto [root, map] = builder_.root(operand);
    const MapId reach =
        builder_.tables.compose(builder_.tables.projection(step.table, builder_.value(operand).table), map, step.table);
    if (reach != kIdentity) return;
    out_.may_touch.emplace(root, result, step.begin);
    out_.in_place.push_back({root, result, step.begin});
  }

  void loop(BuilderStep& step) {
    step.begin = ++clock_;
    for (const BuilderStep::Carry& carry : step.carries) info(carry.variable).loop = &step;
    loops_.push_back({&step, {}});
    for (BuilderBlock& inner : step.blocks) block(inner);
    for (const BuilderStep::Carry& carry : step.carries) use(carry.back, step.blocks[1].end);
    const Loop done = std::move(loops_.back());
    loops_.pop_back();
    step.end = ++clock_;
    for (const auto& [id, number] : done.outside) info(id).uses[number] = step.end;
    for (const BuilderStep::Carry& carry : step.carries) reserve(carry.back, step.begin, step.end);
  }

  void branches(BuilderStep& step) {
    step.begin = ++clock_;
    for (const LocalId id : step.operands) use(id, step.begin);
    for (const LocalId id : step.results) {
      info(id).branches = &step;
      info(id).depth = loops_.size();
    }
    for (BuilderBlock& inner : step.blocks) block(inner);
    step.end = ++clock_;
  }

  void add(LocalId id, int64_t start, int64_t end) {
    out_.of[static_cast<size_t>(id)].push_back({id, start, std::max(start, end)});
  }

  void reserve(LocalId id, int64_t start, int64_t end) {
    auto& range = out_.reserved[static_cast<size_t>(id)];
    range = range.second < range.first ? std::pair(start, end)
                                       : std::pair(std::min(range.first, start), std::max(range.second, end));
  }

  void close(LocalId id) {
    const Info& value = info(id);
    if (value.definitions.empty()) {
      if (builder_.value(id).constant != nullptr && !value.uses.empty()) out_.constants.push_back(id);
      return;
    }
    const int64_t first = *std::min_element(value.definitions.begin(), value.definitions.end());
    int64_t last = first;
    for (const int64_t time : value.uses) last = std::max(last, time);
    if (value.loop != nullptr) return close_variable(id, value, first, last);
    if (value.branches != nullptr) return close_written(id, value, last);
    add(id, first, last);
  }

  void close_variable(LocalId id, const Info& value, int64_t first, int64_t last) {
    const BuilderStep& step = *value.loop;
    const BuilderBlock& condition = step.blocks[0];
    const BuilderBlock& body = step.blocks[1];
    int64_t in_body = body.begin;
    bool after = false;
    for (const int64_t time : value.uses) {
      if (time >= body.begin && time <= body.end) in_body = std::max(in_body, time);
      after = after || time >= step.end;
    }
    add(id, first, condition.end);
    add(id, body.begin, in_body);
    if (after) add(id, step.end, last);
    reserve(id, first, std::max(step.end, last));
  }

  void close_written(LocalId id, const Info& value, int64_t last) {
    const BuilderStep& step = *value.branches;
    for (const int64_t time : value.definitions) {
      int64_t end = step.end;
      for (const BuilderBlock& branch : step.blocks) {
        if (time >= branch.begin && time <= branch.end) end = branch.end;
      }
      add(id, time, end);
    }
    add(id, step.end, std::max(step.end, last));
    reserve(id, step.begin, std::max(step.end, last));
  }

  PlanBuilder& builder_;
  std::vector<Info> values_;
  std::vector<Loop> loops_;
  Liveness out_;
  int64_t clock_ = 0;
  bool together_ = false;  // the last step was one of copies that are made at once
};

}  // namespace

Liveness analyze_liveness(PlanBuilder& builder) { return Walker(builder).run(); }

}  // namespace meshd::compile
