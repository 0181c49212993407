// Arrays that a job promises: its results are to be stored, and later jobs of its session may take them as arguments
// before it has run (arrays/promised.cpp). The client gets their ids with the answer that accepts the job.
//
// Example: job 1 makes arr_a of arr_p, job 2 makes arr_b of arr_a; both are sent at once. Job 2 waits in its session's
// queue until job 1 is over (SessionQueue::may_read), and then reads arr_a, or fails with dependency_failed when job 1
// has.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "service/core/error.h"
#include "service/jobs/admission/admission.h"
#include "service/jobs/admission/job_arrays.h"
#include "service/jobs/dependency.h"
#include "service/mesh/mesh_document.h"

namespace meshd::jobs {

std::optional<sharding::TensorSharding> result_sharding(const Job& job, size_t result) {
  const sharding::TensorSharding& sharding = job.lowered->result_shardings[result];
  if (sharding.mesh == nullptr || sharding.mesh->is_empty()) return std::nullopt;
  sharding::TensorSharding concrete = sharding;
  concrete.mesh = std::make_shared<const mesh::Mesh>(concrete_mesh(*sharding.mesh, job.assignment.devices));
  return concrete;
}

arrays::NewArray result_array(const Job& job, size_t result, tensor::TensorType type) {
  arrays::NewArray wanted;
  wanted.principal = job.request.principal;
  wanted.session = job.request.session;
  wanted.type = std::move(type);
  wanted.sharding = result_sharding(job, result);
  if (wanted.sharding) wanted.mesh_id = mesh::mesh_id(*wanted.sharding->mesh);
  wanted.durability = job.request.durability;
  if (!job.request.result_names.empty()) wanted.name = job.request.result_names.at(result);
  if (wanted.name.empty()) return wanted;
  // A result may take the name of an array that the job donates.
  for (const arrays::ArrayRef& donated : job.donated) wanted.leaving.push_back(donated->info().id);
  return wanted;
}

void Admission::promise_results(Job& job) {
  const JobRequest& request = job.request;
  // Devices that are chosen when the job starts are not known yet, nor are the meshes of its results.
  const compile::Plan& plan = *job.lowered->plan;
  if (request.session.empty() || request.results != ResultMode::kArray || request.least_loaded) return;
  // An array has a type from the beginning, and sizes that depend on data are known at the end.
  if (plan.has_bounded_results()) return;
  std::vector<std::string> ids = job.row.result_arrays;  // of before a restart
  ids.resize(plan.results.size());
  try {
    for (size_t i = 0; i < ids.size(); ++i) {
      const ArrayUpdate* const update = request.update_by(i);
      if (update != nullptr) {
        job.promised.push_back(nullptr);
        ids[i] = std::get<ArrayArgument>(request.arguments[update->argument]).array->info().id;
      } else {
        job.promised.push_back(
            arrays_.promise(result_array(job, i, plan.results[i].parameter.global_type), job.row.id, ids[i]));
        ids[i] = job.promised.back()->info().id;
        job.uses.makes.insert(ids[i]);
      }
    }
  } catch (const core::Error& error) {
    withdraw_results(job, arrays_, "was refused");
    throw;
  }
  job.row.result_arrays = std::move(ids);
}

void withdraw_results(Job& job, arrays::ArrayStore& arrays, const std::string& how) {
  std::erase(job.promised, nullptr);
  arrays.withdraw(job.promised, how);
  job.promised.clear();
}

void free_arguments(Job& job, arrays::ArrayStore& arrays) {
  arrays.job_has_read(std::exchange(job.to_read, {}), job.request.session);
}

void require_dependencies(const Job& job, storage::Catalog& catalog) {
  for (const Argument& given : job.request.arguments) {
    const auto* stored = std::get_if<ArrayArgument>(&given);
    if (stored == nullptr || stored->of_job.empty()) continue;
    const auto maker =
        catalog.read([&](storage::Reader& reader) { return reader.job_head(stored->of_job, job.request.principal); });
    if (!maker || maker->state == storage::JobState::kDone) continue;
    // An array that it was to update is there all the same, as it was before.
    if (storage::is_over(maker->state)) throw dependency_failed(stored->array->info().id, *maker);
    throw core::Error("conflict",
                      fmt::format("job '{}' is not over, and only jobs of its session wait for it", stored->of_job));
  }
}

}  // namespace meshd::jobs
