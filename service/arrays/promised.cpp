// Promised arrays: those that an accepted job is to make. They have their ids from the start, and later jobs of the
// session take them as arguments, so that a client need not wait for a job before it sends the next one. They are in
// memory only: after a restart the job, which runs again, promises them again.
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

void ArrayStore::withdraw(const std::vector<ArrayRef>& promised, const std::string& how) {
  for (const ArrayRef& array : promised) {
    const std::string reason = array->state().with([&](Array::State& state) {
      state.reason = "it was to be a result of job '" + state.promised_by + "', which " + how;
      state.state = ArrayState::kLost;
      state.promised_by.clear();
      state.charge.release();
      return "array '" + array->info().id + "' is lost: " + state.reason;
    });
    pending_.forget(array, reason);
    table_.with([&](Table& table) { table.by_id.erase(array->info().id); });
    array->watchers().notify_all();
  }
}

}  // namespace meshd::arrays
