// /v2: extensions of Triton's protocol that are refused by name: shared memory, traces, settings of the log.
#include "api/routes/models/model_paths.h"

namespace meshd::api {
namespace {

// The body is not looked at.
auto refusal(const char* detail) {
  return [detail](Request&) -> Response { throw core::Error("unsupported_extension", detail); };
}

}  // namespace

std::vector<Route> refused_extension_routes() {
  const auto system = refusal("shared memory is not supported: send tensors behind the JSON (binary_data_size)");
  const auto cuda = refusal("CUDA shared memory is not supported: send tensors behind the JSON (binary_data_size)");
  const auto trace = refusal("settings of traces are not supported: send traceparent, which is in the log's lines");
  const auto logging = refusal("settings of the log are not supported: --log-level and --log-format are the server's");
  return {
      {"GET", "/v2/systemsharedmemory/{path...}", "getSystemSharedMemory", BodyPolicy::kNone, RunOn::kReactor,
       Access::kReader, system},
      {"POST", "/v2/systemsharedmemory/{path...}", "changeSystemSharedMemory", BodyPolicy::kBulk, RunOn::kWorker,
       Access::kUser, system},
      {"GET", "/v2/cudasharedmemory/{path...}", "getCudaSharedMemory", BodyPolicy::kNone, RunOn::kReactor,
       Access::kReader, cuda},
      {"POST", "/v2/cudasharedmemory/{path...}", "changeCudaSharedMemory", BodyPolicy::kBulk, RunOn::kWorker,
       Access::kUser, cuda},
      {"GET", "/v2/trace/setting", "getTraceSetting", BodyPolicy::kNone, RunOn::kReactor, Access::kReader, trace},
      {"POST", "/v2/trace/setting", "changeTraceSetting", BodyPolicy::kBulk, RunOn::kWorker, Access::kUser, trace},
      {"GET", "/v2/models/{name}/trace/setting", "getModelTraceSetting", BodyPolicy::kNone, RunOn::kReactor,
       Access::kReader, trace},
      {"POST", "/v2/models/{name}/trace/setting", "changeModelTraceSetting", BodyPolicy::kBulk, RunOn::kWorker,
       Access::kUser, trace},
      {"GET", "/v2/logging", "getLogSettings", BodyPolicy::kNone, RunOn::kReactor, Access::kReader, logging},
      {"POST", "/v2/logging", "changeLogSettings", BodyPolicy::kBulk, RunOn::kWorker, Access::kUser, logging},
  };
}

}  // namespace meshd::api
