// Promised arrays: those that an accepted job is to make. They have their ids from the start, and later jobs of the
// session take them as arguments, so that a client need not wait for a job before it sends the next one. They are in
// memory only: after a restart the job, which runs again, promises them again.
#include <fmt/core.h>

#include <utility>

#include "service/arrays/array_store.h"
#include "service/core/error.h"

namespace meshd::arrays {

using storage::ArrayState;

ArrayRef ArrayStore::promise(const NewArray& wanted, const std::string& job, std::string id) {
  ArrayRef array = begin(wanted, std::move(id));
  array->state().with([&](Array::State& state) {
    state.promised_by = job;
    state.announced = true;
  });
  pending_.add_promised(array);
  table_.with([&](Table& table) { table.by_id[array->info().id] = array; });
  return array;
}

std::string why_not_made(std::string_view job, std::string_view how) {
  return fmt::format("it was to be a result of job '{}', which {}", job, how);
}

core::Error not_made(std::string_view array, std::string_view why) {
  return {"dependency_failed", fmt::format("array '{}' was not made: {}", array, why)};
}

void ArrayStore::withdraw(const std::vector<ArrayRef>& promised, const std::string& how) {
  for (const ArrayRef& array : promised) {
    const std::string reason = array->state().with([&](Array::State& state) {
      state.reason = why_not_made(state.promised_by, how);
      state.state = ArrayState::kLost;
      state.charge.release();
      return state.reason;
    });
    pending_.forget(array, not_made(array->info().id, reason).detail());
    table_.with([&](Table& table) { table.by_id.erase(array->info().id); });
    array->watchers().notify_all();
  }
}

}  // namespace meshd::arrays
