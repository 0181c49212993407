#include "service/program/verify/verify_sdy_collectives.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "service/core/error.h"
#include "service/ops/op_def.h"

namespace meshd::program {
namespace {

using Axes = std::vector<sharding::AxisRef>;

std::string text_of(const Axes& axes, const sharding::TensorSharding& like) {
  auto one = sharding::fully_replicated("m", like.mesh, 1);
  one.dims[0].axes = axes;
  const std::string text = sharding::to_sdy(one);
  return text.substr(text.find('[') + 1, text.rfind(']') - text.find('[') - 1);
}

class Collective {
 public:
  Collective(const ir::Function& function, const ir::Op& op, const sharding::TensorSharding* operand,
             const sharding::TensorSharding& result)
      : op_(op),
        result_(result),
        operand_(operand != nullptr ? *operand
                                    : sharding::fully_replicated(result.mesh_name, result.mesh,
                                                                 function.type_of(op.operands[0]).rank())) {}

  void run() {
    const ops::CollectiveAxes& axes = ops::op(op_.code).axes;
    if (axes.effect != ops::AxesEffect::kPermuted) same_mesh();
    switch (axes.effect) {
      case ops::AxesEffect::kNone:
        return;
      case ops::AxesEffect::kPermuted:
        return permute();
      case ops::AxesEffect::kRemoved:
        return by_dim(axes.attribute, false);
      case ops::AxesEffect::kAdded:
        return by_dim(axes.attribute, true);
      case ops::AxesEffect::kMoved:
        return exchange(axes.attribute);
      case ops::AxesEffect::kReduced:
        return all_reduce(axes.attribute);
      case ops::AxesEffect::kKept:
        return same_dims();
    }
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    ir::fail("invalid_program", op_.location, "'" + op_.name + "': " + message);
  }

  void same_mesh() const {
    if (operand_.mesh->axes == result_.mesh->axes && operand_.mesh->device_ids == result_.mesh->device_ids) return;
    fail(fmt::format("the operand is over {}, the result over {}", mesh::to_text(*operand_.mesh),
                     mesh::to_text(*result_.mesh)));
  }

  void permute() const {
    if (operand_.mesh->axes != result_.mesh->axes) {
      fail(fmt::format("the operand's mesh is {}, the result's is {}; a permutation needs the same axes",
                       mesh::to_text(*operand_.mesh), mesh::to_text(*result_.mesh)));
    }
    for (size_t d = 0; d < result_.dims.size(); ++d) {
      const int64_t before = operand_.part_count(static_cast<int64_t>(d));
      const int64_t after = result_.part_count(static_cast<int64_t>(d));
      if (before != after) {
        fail(fmt::format("dimension {} is sharded {} ways in the operand and {} ways in the result", d, before, after));
      }
    }
  }

  [[nodiscard]] const ir::DictAttr* lists(std::string_view name) const {
    const ir::Attribute* found = ir::find(op_.attributes, name);
    if (found == nullptr) return nullptr;
    const auto* dict = found->as<ir::DictAttr>();
    if (dict == nullptr || !dict->name.starts_with("sdy."))
      fail("attribute '" + std::string(name) + "' must hold lists of axes");
    return dict;
  }

  // "x" or "x":(1)2, with the quotes that the text has.
  [[nodiscard]] sharding::AxisRef axis(const std::string& text) const {
    const size_t end = text.rfind('"');
    const std::string name = text.substr(1, end - 1);
    const auto index = result_.mesh->axis_index(name);
    if (!index) fail(fmt::format("unknown axis \"{}\", the mesh is {}", name, mesh::to_text(*result_.mesh)));
    sharding::AxisRef out{*index, 1, 0};
    if (end + 1 < text.size()) {
      const size_t close = text.find(')', end);
      std::from_chars(text.data() + end + 3, text.data() + close, out.pre);
      std::from_chars(text.data() + close + 1, text.data() + text.size(), out.size);
      const int64_t whole = result_.mesh->axes[static_cast<size_t>(*index)].size;
      if (out.pre < 1 || out.size < 2 || out.pre > whole || out.size > whole || whole % (out.pre * out.size) != 0)
        fail(fmt::format("the part {} does not fit the axis of size {}", text, whole));
    }
    return out;
  }

  [[nodiscard]] Axes axes(const ir::Attribute& list) const {
    Axes out;
    for (const ir::Attribute& one : list.as<ir::ArrayAttr>()->values)
      out.push_back(axis(one.as<ir::StringAttr>()->value));
    return out;
  }

  // `longer` must be `shorter` with `moved` behind it.
  void expect_longer(size_t dim, const Axes& shorter, const Axes& moved, const Axes& longer) const {
    Axes joined = shorter;
    joined.insert(joined.end(), moved.begin(), moved.end());
    const mesh::Mesh& mesh = *result_.mesh;
    if (sharding::canonical_axes(joined, mesh) == sharding::canonical_axes(longer, mesh)) return;
    fail(
        fmt::format("dimension {} is sharded by {} in the operand and by {} in the result, which {} does not lead from "
                    "one to the other",
                    dim, text_of(operand_.dims[dim].axes, operand_), text_of(result_.dims[dim].axes, result_),
                    text_of(moved, result_)));
  }

  void by_dim(std::string_view name, bool adds) const {
    const ir::DictAttr* list = lists(name);
    if (list == nullptr) return;
    if (list->entries.size() != result_.dims.size()) {
      fail(fmt::format("there are {} lists of axes for {} dimensions", list->entries.size(), result_.dims.size()));
    }
    for (size_t d = 0; d < result_.dims.size(); ++d) {
      const Axes moved = axes(list->entries[d].value);
      const Axes& before = operand_.dims[d].axes;
      const Axes& after = result_.dims[d].axes;
      adds ? expect_longer(d, before, moved, after) : expect_longer(d, after, moved, before);
    }
  }

  void exchange(std::string_view name) const {
    const ir::DictAttr* list = lists(name);
    if (list == nullptr) return;
    const auto rank = static_cast<int64_t>(result_.dims.size());
    std::vector<Axes> loses(result_.dims.size()), gains(result_.dims.size());
    std::vector<char> used(result_.dims.size(), 0);
    for (const auto& [dims, moved] : list->entries) {
      int64_t ends[2] = {-1, -1};
      const size_t arrow = dims.find("->");
      std::from_chars(dims.data(), dims.data() + arrow, ends[0]);
      std::from_chars(dims.data() + arrow + 2, dims.data() + dims.size(), ends[1]);
      for (const int64_t dim : ends) {
        if (dim < 0 || dim >= rank) fail(fmt::format("dimension {} is out of range [0, {})", dim, rank));
        if (std::exchange(used[static_cast<size_t>(dim)], 1) != 0)
          fail(fmt::format("dimension {} occurs twice in the parameters", dim));
      }
      loses[static_cast<size_t>(ends[0])] = axes(moved);
      gains[static_cast<size_t>(ends[1])] = axes(moved);
    }
    for (size_t d = 0; d < result_.dims.size(); ++d) {
      if (!gains[d].empty()) {
        expect_longer(d, operand_.dims[d].axes, gains[d], result_.dims[d].axes);
      } else {
        expect_longer(d, result_.dims[d].axes, loses[d], operand_.dims[d].axes);
      }
    }
  }

  void same_dims() const {
    for (size_t d = 0; d < result_.dims.size(); ++d) expect_longer(d, operand_.dims[d].axes, {}, result_.dims[d].axes);
  }

  void all_reduce(std::string_view name) const {
    const ir::DictAttr* list = lists(name);
    if (list != nullptr && !list->entries.empty()) {
      for (const sharding::AxisRef& axis : axes(list->entries.front().value)) {
        for (size_t d = 0; d < operand_.dims.size(); ++d) {
          for (const sharding::AxisRef& used : operand_.dims[d].axes) {
            if (sharding::overlaps(axis, used, *result_.mesh)) {
              fail(fmt::format("the reduction axis {} shards dimension {} of the operand, which has {}",
                               text_of({axis}, result_), d, text_of(operand_.dims[d].axes, operand_)));
            }
          }
        }
      }
    }
    same_dims();
  }

  const ir::Op& op_;
  const sharding::TensorSharding& result_;
  const sharding::TensorSharding operand_;
};

}  // namespace

void verify_sdy_collective(const ir::Function& function, const ir::Op& op, const KnownShardings& known) {
  if (ops::op(op.code).axes.effect == ops::AxesEffect::kNone) return;
  const ir::Attribute* attribute = ir::find(op.attributes, "sharding");
  const auto* held = attribute == nullptr ? nullptr : attribute->as<ir::ShardingAttr>();
  if (held == nullptr || held->shardings.size() != 1)
    ir::fail("invalid_program", op.location, "'" + op.name + "' needs one out_sharding");
  const sharding::TensorSharding& result = held->shardings.front();
  if (result.mesh->is_maximal() || result.mesh->axes.empty()) return;
  const auto found = known.find(op.operands[0]);
  const bool is_known =
      found != known.end() && found->second.rank() == result.rank() && !found->second.mesh->axes.empty();
  Collective(function, op, is_known ? &found->second : nullptr, result).run();
}

}  // namespace meshd::program
