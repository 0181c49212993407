#include "service/quotas/array_ledger.h"

#include <fmt/core.h>

#include <map>
#include <utility>

#include "service/core/error.h"
#include "service/core/locked.h"

namespace meshd::quotas {
namespace {

constexpr std::string_view kAnArray = "an array";

// As a difference: the sum may not fit.
void require_room(std::string_view what, int64_t bytes, int64_t held, int64_t most, const std::string& principal) {
  if (most == 0 || bytes <= most - held) return;
  throw core::Error("quota_exceeded", fmt::format("{} of {} bytes does not fit: principal '{}' has {} bytes of arrays "
                                                  "and of values that wait, at most {} are allowed",
                                                  what, bytes, display_name(principal), held, most));
}

}  // namespace

struct ArrayLedger::Totals {
  core::Locked<std::map<std::string, ArrayTotals, std::less<>>> by_principal;
};

class ArrayCharge::Held {
 public:
  Held(std::shared_ptr<ArrayLedger::Totals> totals, std::string principal, ArrayTotals part, int64_t most_bytes)
      : totals_(std::move(totals)), principal_(std::move(principal)), part_(part), most_bytes_(most_bytes) {}
  ~Held() {
    totals_->by_principal.with([&](auto& map) {
      const auto held = map.find(principal_);
      if (held == map.end()) return;
      held->second.arrays -= part_.arrays;
      held->second.bytes -= part_.bytes;
      if (held->second.arrays == 0 && held->second.bytes == 0) map.erase(held);
    });
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  void grow(int64_t bytes) {
    totals_->by_principal.with([&](auto& map) {
      ArrayTotals& entry = map[principal_];
      require_room(kAnArray, bytes, entry.bytes, most_bytes_, principal_);
      entry.bytes += bytes;
    });
    part_.bytes += bytes;
  }
  void shrink(int64_t bytes) {
    totals_->by_principal.with([&](auto& map) { map[principal_].bytes -= bytes; });
    part_.bytes -= bytes;
  }

 private:
  const std::shared_ptr<ArrayLedger::Totals> totals_;
  const std::string principal_;
  ArrayTotals part_;
  const int64_t most_bytes_;  // of the principal; 0: any number
};

void ArrayCharge::grow(int64_t bytes) {
  if (held_ != nullptr) held_->grow(bytes);
}

void ArrayCharge::shrink(int64_t bytes) {
  if (held_ != nullptr) held_->shrink(bytes);
}

ArrayLedger::ArrayLedger(const Limits& limits) : limits_(limits), totals_(std::make_shared<Totals>()) {}

ArrayCharge ArrayLedger::held(const std::string& principal, ArrayTotals part) const {
  ArrayCharge charge;
  charge.held_ = std::make_shared<ArrayCharge::Held>(totals_, principal, part, limits_.array_bytes);
  return charge;
}

ArrayCharge ArrayLedger::charge(const std::string& principal, int64_t bytes) {
  totals_->by_principal.with([&](auto& map) {
    const auto known = map.find(principal);
    const ArrayTotals held = known == map.end() ? ArrayTotals() : known->second;
    require_below(held.arrays, limits_.arrays, principal, "arrays");
    require_room(kAnArray, bytes, held.bytes, limits_.array_bytes, principal);
    ArrayTotals& entry = map[principal];
    ++entry.arrays;
    entry.bytes += bytes;
  });
  return counted(principal, bytes);
}

ArrayCharge ArrayLedger::charge_bytes(const std::string& principal, int64_t bytes, std::string_view what, Fit fit) {
  if (bytes == 0) return {};
  totals_->by_principal.with([&](auto& map) {
    const auto known = map.find(principal);
    const int64_t held = known == map.end() ? 0 : known->second.bytes;
    if (fit == Fit::kWithin) require_room(what, bytes, held, limits_.array_bytes, principal);
    map[principal].bytes += bytes;
  });
  return held(principal, {0, bytes});
}

void ArrayLedger::count(const std::string& principal, ArrayTotals totals) {
  if (totals.arrays == 0) return;
  totals_->by_principal.with([&](auto& map) {
    ArrayTotals& entry = map[principal];
    entry.arrays += totals.arrays;
    entry.bytes += totals.bytes;
  });
}

ArrayCharge ArrayLedger::counted(const std::string& principal, int64_t bytes) { return held(principal, {1, bytes}); }

ArrayTotals ArrayLedger::totals(std::string_view principal) const {
  return totals_->by_principal.with([&](const auto& map) {
    const auto found = map.find(principal);
    return found == map.end() ? ArrayTotals() : found->second;
  });
}

}  // namespace meshd::quotas
