#include "service/jobs/execution/argument_binder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "service/core/error.h"
#include "service/jobs/admission/job_arrays.h"
#include "service/jobs/admission/job_layouts.h"
#include "service/jobs/execution/binding.h"
#include "service/mesh/mesh_document.h"

namespace meshd::jobs {
namespace {

// Results of so many bytes are stored on the disks of the processes that have them; smaller ones are sent as fast.
constexpr int64_t kLeftBytes = int64_t{64} << 10;

// A plan of so many bytes may bind for a millisecond and more.
constexpr int64_t kLongBinding = int64_t{4} << 20;

std::string place_text(const sharding::TensorSharding& sharding) {
  return mesh::to_text(*sharding.mesh) + " " + sharding::to_sdy(sharding);
}

// A replicated value has no mesh.
std::string wanted_text(const sharding::TensorSharding& sharding) {
  return sharding.mesh == nullptr ? "it replicated" : sharding::to_sdy(sharding);
}

// A slice of an array as one dense value.
tensor::BufferRef gather_slice(const ArrayArgument& argument, arrays::ReadableShards shards, tensor::BufferPool& pool) {
  const arrays::Array& array = *argument.array;
  arrays::GatherReader reader({argument.array, &array.layout()}, tensor::size_bytes(array.info().type.dtype),
                              std::move(shards), *argument.slices);
  tensor::BufferRef buffer = pool.allocate(reader.total_bytes());
  reader.read(buffer->bytes());
  return buffer;
}

// Where result `i` of a run on several processes is to be.
device::ResultPlace place_of_result(const Job& job, size_t i) {
  const JobRequest& request = job.request;
  const compile::Plan& plan = *job.lowered->plan;
  const ArrayUpdate* const update = request.update_by(i);
  const bool is_update = update != nullptr;
  const bool is_stored = is_update || request.results == ResultMode::kArray;
  const int64_t bytes = plan.results[i].shard_bytes * plan.results[i].shard_count();
  bool is_left = is_stored && bytes >= kLeftBytes && request.durability == storage::Durability::kDurable;
  if (is_update) {
    const auto& argument = std::get<ArrayArgument>(request.arguments[update->argument]);
    const arrays::Array& array = *argument.array;
    const auto sharding = result_sharding(job, i);
    is_left = bytes >= kLeftBytes && array.info().durability == storage::Durability::kDurable && sharding &&
              sharding::make_layout(array.info().type.dims, *sharding).part_counts == array.layout().part_counts;
  }
  if (is_left) return device::ResultPlace::kThere;
  return is_stored ? device::ResultPlace::kBoth : device::ResultPlace::kHere;
}

// The version of an array that the job updates, which has to be the one that the request is for.
void note_version(Job& job, size_t i, int64_t version) {
  const JobRequest& request = job.request;
  for (const ArrayUpdate& update : request.updates) {
    if (update.argument != i) continue;
    job.read_versions[i] = version;
    if (update.version && *update.version != version) {
      const arrays::ArrayRef& array = std::get<ArrayArgument>(request.arguments[i]).array;
      throw core::Error("precondition_failed", fmt::format("array '{}' has version {}, the update is for version {}",
                                                           array->info().id, version, *update.version));
    }
  }
}

// A committed array is as the program wants it, unless the request lets it be resharded.
void require_sharding(const Job& job, size_t i) {
  const compile::PlanParameter& wanted = job.lowered->plan->arguments[i];
  const arrays::Array& array = *std::get<ArrayArgument>(job.request.arguments[i]).array;
  const arrays::ArrayInfo& info = array.info();
  if (has_shards_of(array.layout(), wanted) || !info.committed || job.request.reshard) return;
  throw core::Error(
      "sharding_mismatch",
      fmt::format("argument {}: array '{}' is sharded as {}, the program wants {}; send \"reshard\": "
                  "true to have it moved",
                  i, info.id, place_text(info.sharding), wanted_text(job.lowered->argument_shardings[i])));
}

// Buffers of donated arrays may be written when only this job holds them: in `taken` and, where layouts agree, in the
// argument.
void allow_overwriting(const Job& job, std::vector<device::RunArgument>& arguments) {
  const JobRequest& request = job.request;
  for (size_t i = 0; i < request.arguments.size(); ++i) {
    const auto* argument = std::get_if<ArrayArgument>(&request.arguments[i]);
    const bool is_taken = argument != nullptr && !argument->slices &&
                          std::any_of(job.taken.begin(), job.taken.end(),
                                      [&](const auto& entry) { return entry.first == argument->array; });
    if (!is_taken) continue;
    arguments[i].may_overwrite =
        std::all_of(arguments[i].shards.begin(), arguments[i].shards.end(),
                    [](const tensor::BufferRef& buffer) { return buffer == nullptr || buffer.use_count() <= 2; });
  }
}

}  // namespace

// Where the shards are that are not in memory, and what reads one.
void ArgumentBinder::give_files(device::RunArgument& bound, const arrays::ArrayRef& array,
                                const arrays::ArrayStore::Referred& referred, const compile::PlanParameter& wanted) {
  if (std::none_of(bound.shards.begin(), bound.shards.end(), [](const auto& shard) { return shard == nullptr; }))
    return;
  const auto of_plan =
      std::make_shared<const std::vector<std::optional<int64_t>>>(shards_of_plan(array->layout(), wanted));
  const auto blobs = std::make_shared<const std::vector<storage::BlobRef>>(referred.blobs);
  for (const std::optional<int64_t>& shard : *of_plan) {
    device::ShardFile& file = bound.files.emplace_back();
    if (!shard) continue;
    const storage::BlobRef& blob = blobs->at(static_cast<size_t>(*shard));
    file = {blob.name, blob.length, blob.checksum};
  }
  bound.load = [this, array, of_plan, blobs, version = referred.version, kept = referred.kept](int64_t shard) {
    const int64_t own = of_plan->at(static_cast<size_t>(shard)).value();
    return arrays_.load_shard(array, version, blobs->at(static_cast<size_t>(own)), own);
  };
}

// What this process need not have of a run of several: shards of stored arrays that others have or read, and of results
// that are large enough to be stored where they are made.
device::ApartShards ArgumentBinder::find_apart(const Job& job) const {
  device::ApartShards out;
  const JobRequest& request = job.request;
  const compile::Plan& plan = *job.lowered->plan;
  if (!engine_.keeps_devices(job.assignment.devices)) return out;
  for (size_t i = 0; i < request.arguments.size(); ++i) {
    const auto* argument = std::get_if<ArrayArgument>(&request.arguments[i]);
    out.arguments.push_back(
        argument != nullptr && !argument->slices && has_shards_of(argument->array->layout(), plan.arguments[i]) ? 1
                                                                                                                : 0);
  }
  const bool stores = request.results == ResultMode::kArray || !request.updates.empty();
  if (!stores || plan.has_bounded_results()) return out;
  for (size_t i = 0; i < plan.results.size(); ++i) {
    out.results.push_back(place_of_result(job, i));
  }
  return out;
}

// A whole stored array.
device::RunArgument ArgumentBinder::bind_array(Job& job, size_t i) {
  const JobRequest& request = job.request;
  const compile::PlanParameter& wanted = job.lowered->plan->arguments[i];
  const arrays::ArrayRef& array = std::get<ArrayArgument>(request.arguments[i]).array;
  const bool is_donated = std::find(job.donated.begin(), job.donated.end(), array) != job.donated.end();
  arrays::ArrayStore::Referred referred;
  if (job.is_apart(i)) {
    // Other processes have shards of it, or get them; the rest need not be read here.
    referred = arrays_.refer(array, is_donated ? job.row.id : "");
  } else if (is_donated) {
    referred.shards = arrays_.take(array, job.row.id);
    referred.version = array->version();  // it does not change any more
  } else {
    arrays::ArrayStore::Snapshot now = arrays_.snapshot(array);
    referred.shards = std::move(now.shards);
    referred.version = now.version;
  }
  if (is_donated) job.taken.emplace_back(array, referred.shards);
  note_version(job, i, referred.version);
  require_sharding(job, i);
  device::RunArgument bound;
  bound.shards = bind_argument({&array->layout(), &referred.shards}, wanted, *engine_.pool(),
                               is_donated ? BufferSlices::kRefused : BufferSlices::kAllowed);
  if (!job.apart.arguments.empty()) bound.version = version_name(*array, referred.version);
  if (job.is_apart(i)) give_files(bound, array, referred, wanted);
  return bound;
}

device::RunArgument ArgumentBinder::bind_one(Job& job, size_t i) {
  const JobRequest& request = job.request;
  const compile::PlanParameter& wanted = job.lowered->plan->arguments[i];
  tensor::BufferPool& pool = *engine_.pool();
  if (const auto* value = std::get_if<tensor::DenseValue>(&request.arguments[i])) {
    const sharding::Layout layout = one_device_layout(value->type.dims);
    const arrays::ShardBuffers shards{value->buffer};
    device::RunArgument bound;
    bound.shards = bind_argument({&layout, &shards}, wanted, pool, BufferSlices::kAllowed);
    bound.may_overwrite = true;  // from the request's body: no other owner
    return bound;
  }
  const auto& argument = std::get<ArrayArgument>(request.arguments[i]);
  if (!argument.slices) return bind_array(job, i);
  tensor::Dims dims = arrays::slice_dims(*argument.slices);
  const sharding::Layout layout = one_device_layout(dims);
  const arrays::ShardBuffers shards{gather_slice(argument, arrays_.open(argument.array).shards, pool)};
  device::RunArgument bound;
  bound.shards = bind_argument({&layout, &shards}, wanted, pool, BufferSlices::kAllowed);
  bound.may_overwrite = true;
  return bound;
}

std::vector<device::RunArgument> ArgumentBinder::bind(Job& job, core::Checkpoint& checkpoint) {
  const JobRequest& request = job.request;
  const compile::Plan& plan = *job.lowered->plan;
  // Reads files, or copies much: others need not wait for it.
  const bool takes_long = plan.peak_bytes >= kLongBinding ||
                          std::any_of(request.arguments.begin(), request.arguments.end(), [&](const Argument& given) {
                            const auto* stored = std::get_if<ArrayArgument>(&given);
                            const auto i = static_cast<size_t>(&given - request.arguments.data());
                            return stored != nullptr && !job.is_apart(i) && !arrays_.is_loaded(stored->array);
                          });
  core::UncheckedCall aside(takes_long ? &checkpoint : nullptr);
  std::vector<device::RunArgument> arguments;
  for (size_t i = 0; i < request.arguments.size(); ++i) {
    arguments.push_back(bind_one(job, i));
  }
  allow_overwriting(job, arguments);
  aside.end();
  return arguments;
}

}  // namespace meshd::jobs
