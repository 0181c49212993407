// /v2: extensions of Triton's protocol that are refused by name: shared memory, traces, settings of the log.
#include <string>

#include "api/routes/models/model_paths.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

constexpr const char* kSystemMemory = "shared memory is not supported: send tensors behind the JSON (binary_data_size)";
constexpr const char* kCudaMemory =
    "CUDA shared memory is not supported: send tensors behind the JSON (binary_data_size)";
constexpr const char* kTrace = "settings of traces are not supported: send traceparent, which is in the log's lines";
constexpr const char* kLog = "settings of the log are not supported: --log-level and --log-format are the server's";

/// A path that is read with GET and changed with POST.
struct RefusedExtension {
  const char* path;
  const char* operation;  ///< behind get and change
  const char* detail;
};
constexpr RefusedExtension kRefused[] = {
    {"/v2/systemsharedmemory/{path...}", "SystemSharedMemory", kSystemMemory},
    {"/v2/cudasharedmemory/{path...}", "CudaSharedMemory", kCudaMemory},
    {"/v2/trace/setting", "TraceSetting", kTrace},
    {"/v2/models/{name}/trace/setting", "ModelTraceSetting", kTrace},
    {"/v2/logging", "LogSettings", kLog},
};

}  // namespace

std::vector<Route> refused_extension_routes() {
  std::vector<Route> out;
  for (const auto& [path, operation, detail] : kRefused) {
    // The body is not looked at.
    const auto refuse = [what = detail](Request&) -> Response { throw core::Error("unsupported_extension", what); };
    const std::string name = operation;
    out.push_back({"GET", path, "get" + name, BodyPolicy::kNone, RunOn::kReactor, Access::kReader, refuse});
    out.push_back({"POST", path, "change" + name, BodyPolicy::kInference, RunOn::kWorker, Access::kUser, refuse});
  }
  return out;
}

}  // namespace meshd::api
