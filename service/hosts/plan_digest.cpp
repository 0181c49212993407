#include "service/hosts/plan_digest.h"

#include <span>

#include "service/core/sha256.h"
#include "service/tensor/buffer.h"

namespace meshd::hosts {
namespace {

// Numbers and texts, each with an end, so that no two lists look alike.
class Digest {
 public:
  template <typename... Numbers>
  void numbers(Numbers... values) {
    ((text_ += std::to_string(values) + ","), ...);
    text_ += ';';
  }
  template <typename List>
  void list(const List& values) {
    for (const auto value : values) text_ += std::to_string(value) + ",";
    text_ += ';';
  }
  void text(const std::string& value) { text_ += std::to_string(value.size()) + ":" + value; }
  void slot(const compile::SlotRef& ref) { numbers(ref.slot, ref.map, ref.first, ref.value); }
  void bytes(std::span<const std::byte> bytes) { sha_.update(bytes); }
  std::string take() {
    sha_.update(std::as_bytes(std::span(text_.data(), text_.size())));
    return sha_.base64();
  }

 private:
  std::string text_;
  core::Sha256 sha_;
};

void add(Digest& digest, const compile::Step& step) {
  digest.numbers(static_cast<int>(step.kind), step.table, step.blocks_first, step.block_count, step.effect, step.number,
                 static_cast<int>(step.is_bool), static_cast<int>(step.small != nullptr));
  digest.text(step.name);
  for (const auto* list : {&step.operands, &step.results}) {
    digest.numbers(list->size());
    for (const compile::SlotRef& ref : *list) digest.slot(ref);
  }
  digest.list(step.offsets);
  for (const auto& [a, b] : step.exchanges) digest.numbers(a, b);
}

}  // namespace

std::string plan_digest(const compile::Plan& plan) {
  Digest digest;
  digest.numbers(plan.device_count, plan.step_count, plan.pointer_count, plan.peak_bytes, plan.threads);
  for (const compile::ShardTable& table : plan.tables) {
    digest.numbers(table.view, table.mask);
    digest.list(table.shard_of_device);
  }
  for (const std::vector<int32_t>& map : plan.maps) digest.list(map);
  for (const compile::Slot& slot : plan.slots) {
    digest.numbers(static_cast<int>(slot.storage), slot.table, slot.bytes, slot.stride, slot.offset, slot.argument,
                   static_cast<int>(slot.is_writable), slot.first_pointer);
  }
  for (const compile::Block& block : plan.blocks) {
    digest.numbers(block.steps.size());
    for (const compile::Step& step : block.steps) add(digest, step);
  }
  for (const auto* list : {&plan.arguments, &plan.results}) {
    for (const compile::PlanParameter& parameter : *list) {
      digest.numbers(parameter.shard_bytes, parameter.table, parameter.aliased, static_cast<int>(parameter.is_donated));
      digest.slot(parameter.slot_ref);
    }
  }
  for (const compile::PlanEffect& effect : plan.effects) {
    digest.numbers(effect.point.program_point, effect.point.callback);
    digest.text(effect.name);
  }
  // Where they begin in their memory depends on its address.
  constexpr auto kSlack = static_cast<size_t>(tensor::kBufferAlignment);
  const std::vector<std::byte>& constants = plan.constant_bytes;
  if (!constants.empty())
    digest.bytes(std::span(constants).subspan(static_cast<size_t>(plan.constant_start), constants.size() - kSlack));
  return digest.take();
}

}  // namespace meshd::hosts
