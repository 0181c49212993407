// The arrays of a job: its results, those that are promised before it has run among them, and its arguments. Private
// to service/jobs.
#pragma once

#include <optional>
#include <string>

#include "service/arrays/array_store.h"
#include "service/jobs/job.h"
#include "storage/catalog.h"

namespace meshd::jobs {

/// The sharding of a result on the job's devices; nothing: one device, unsharded.
std::optional<sharding::TensorSharding> result_sharding(const Job& job, size_t result);

/// `type`: of the result; one whose size depends on data has it only after the run.
arrays::NewArray result_array(const Job& job, size_t result, tensor::TensorType type);

/// What a job that ends without a commit has promised is lost: it `how`, "failed: ...".
void withdraw_results(Job& job, arrays::ArrayStore& arrays, const std::string& how);

/// Arguments that the job's arrays keep for it are free again.
void free_arguments(Job& job, arrays::ArrayStore& arrays);

/// Throws dependency_failed where a job whose result it names has failed, conflict where that is not over.
void require_dependencies(const Job& job, storage::Catalog& catalog);

}  // namespace meshd::jobs
