// The results of a run as shards of arrays, and the shards that other processes hold of them.
#include <algorithm>

#include "service/jobs/admission/job_arrays.h"
#include "service/jobs/admission/job_layouts.h"
#include "service/jobs/commit/bounded_results.h"
#include "service/jobs/commit/outputs.h"
#include "service/jobs/execution/binding.h"

namespace meshd::jobs {
namespace {

bool has_null(const arrays::ShardBuffers& shards) {
  return std::any_of(shards.begin(), shards.end(), [](const auto& shard) { return shard == nullptr; });
}

// Shards of a result in the array's layout: shared where the layouts agree, else copied.
arrays::ShardBuffers in_layout_of(const arrays::ArrayRef& array, const sharding::Layout& layout,
                                  arrays::ShardBuffers shards, arrays::ArrayStore& store) {
  if (layout.part_counts == array->layout().part_counts) return shards;
  arrays::ShardBuffers out = store.allocate(*array);
  arrays::copy_between(layout, shards, array->layout(), out, tensor::size_bytes(array->info().type.dtype));
  return out;
}

sharding::Layout layout_of(const JobValue& value, const tensor::Dims& dims) {
  return value.sharding ? sharding::make_layout(dims, *value.sharding) : one_device_layout(dims);
}

}  // namespace

// An update takes the place of the array that the argument names.
void Commit::lay_out_update(const Job& job, const ArrayUpdate& update, const sharding::Layout& layout,
                            const std::vector<tensor::BufferRef>& output, JobValue& value, Outputs& outputs) {
  const compile::PlanParameter& given = job.lowered->plan->results[update.result];
  value.array = std::get<ArrayArgument>(job.request.arguments[update.argument]).array;
  const int64_t version = job.read_versions.at(update.argument);
  value.version = version + 1;
  arrays::ShardBuffers shards = unbind_result(output, given, layout);
  if (has_null(shards)) {
    outputs.left.push_back({true, outputs.updates.size(), update.result, plan_shards_of(given, layout)});
  } else {
    shards = in_layout_of(value.array, layout, std::move(shards), arrays_);
  }
  outputs.updates.push_back({value.array, version, std::move(shards)});
}

Commit::Outputs Commit::lay_out(const Job& job, device::RunOutcome& outcome, JobResult& result) {
  const JobRequest& request = job.request;
  const compile::Plan& plan = *job.lowered->plan;
  Outputs outputs;
  std::vector<tensor::Dims> real;  // empty: those of the plan
  if (plan.has_bounded_results()) real = real_dims(plan, outcome.outputs);
  for (size_t i = 0; i < plan.result_count(); ++i) {
    const compile::PlanParameter& given = plan.results[i];
    JobValue value;
    value.type = given.parameter.global_type;
    value.result_info = given.parameter.result_info;
    value.sharding = result_sharding(job, i);
    sharding::Layout layout = layout_of(value, value.type.dims);
    const ArrayUpdate* const update = request.update_by(i);
    if (update != nullptr) {
      lay_out_update(job, *update, layout, outcome.outputs[i], value, outputs);
    } else if (request.results != ResultMode::kNone) {
      value.shards = unbind_result(outcome.outputs[i], given, layout);
    }
    if (!real.empty() && value.type.dims != real[i]) {
      sharding::Layout wanted = layout_of(value, real[i]);
      if (!value.shards.empty()) {
        value.shards = without_padding(value.shards, layout, wanted, tensor::size_bytes(value.type.dtype), pool_);
      }
      layout = std::move(wanted);
      value.type.dims = real[i];
    }
    if (request.results == ResultMode::kArray && value.array == nullptr) {
      value.array = job.promised.empty() ? arrays_.begin(result_array(job, i, value.type)) : job.promised[i];
      outputs.stored.emplace_back(value.array, value.shards);
      if (has_null(value.shards)) {
        outputs.left.push_back({false, outputs.stored.size() - 1, i, plan_shards_of(given, layout)});
        value.shards.clear();
      }
    }
    value.layout = std::make_shared<const sharding::Layout>(std::move(layout));
    result.results.push_back(std::move(value));
  }
  outcome.outputs.clear();
  return outputs;
}

void Commit::store_left(Outputs& outputs, device::HeldResults& held) {
  std::vector<device::HeldResults::ToStore> wanted;
  storage::PendingBlobs unfinished(store_);
  for (const Outputs::Left& left : outputs.left) {
    const arrays::ArrayRef& array =
        left.is_update ? outputs.updates[left.place].array : outputs.stored[left.place].first;
    const arrays::ShardBuffers& shards =
        left.is_update ? outputs.updates[left.place].shards : outputs.stored[left.place].second.memory;
    for (size_t s = 0; s < shards.size(); ++s) {
      if (shards[s] != nullptr) continue;
      const int64_t shard = left.plan_shards[s];
      wanted.push_back({left.result, shard,
                        arrays_.new_blob_name(*array, static_cast<int64_t>(s), held.rank_of(left.result, shard))});
      unfinished.adopt({wanted.back().name, 0, 0});
    }
  }
  const std::vector<device::ShardFile> files = held.store(wanted);
  auto file = files.begin();
  outputs.left_of_updates.emplace(store_);
  for (const Outputs::Left& left : outputs.left) {
    if (left.is_update) {
      arrays::ArrayStore::Update& update = outputs.updates[left.place];
      for (const tensor::BufferRef& shard : update.shards) {
        storage::BlobRef& blob = update.left.emplace_back();
        if (shard != nullptr) continue;
        blob = {file->name, file->length, file->checksum};
        outputs.left_of_updates->adopt(blob);
        ++file;
      }
      continue;
    }
    arrays::NewShards& shards = outputs.stored[left.place].second;
    shards.left.emplace(store_);
    for (const tensor::BufferRef& shard : shards.memory) {
      if (shard != nullptr) continue;
      shards.left->adopt({file->name, file->length, file->checksum});
      ++file;
    }
  }
  unfinished.keep();
}

}  // namespace meshd::jobs
