// /v2: health and inference of the Open Inference Protocol. Shapes of requests and responses are in
// api/codecs/runs/inference_codec.h.
#include <fmt/core.h>

#include <utility>

#include "api/codecs/runs/inference_codec.h"
#include "api/routes/models/model_paths.h"

namespace meshd::api {
namespace {

constexpr std::string_view kHeadLength = "Inference-Header-Content-Length";
constexpr int64_t kTextBytes = 6;             // of a byte of an output, at most
constexpr size_t kCopied = size_t{64} << 10;  // shorter answers are one text: one write, and a length for every coding

// Memory for outputs as text, while it is made. Throws memory_full.
core::MemoryReservation hold_text(Services& services, const DecodedInference& request,
                                  const std::vector<models::InferOutput>& outputs) {
  core::MemoryReservation out(services.memory, core::MemoryAccount::kAnswers);
  int64_t bytes = 0;
  for (const WantedOutput& wanted : request.outputs) {
    if (!wanted.is_binary) bytes += kTextBytes * static_cast<int64_t>(outputs[wanted.number].bytes.size());
  }
  if (bytes <= static_cast<int64_t>(kCopied) || out.try_grow_beyond(bytes)) return out;
  throw core::Error("memory_full", "other answers hold the memory that this one needs as text; ask for binary outputs")
      .with_retry_after(1);
}

bool is_ready(Services& services, const ProcessFacts& facts) {
  return facts.is_recovered() && !facts.is_draining() && facts.storage().health.writable &&
         services.models.is_settled();
}

Response infer(Request& request, Services& services) {
  const models::ModelRef model =
      services.models.find_ready(request.capture("name"), version_in(request), request.principal);
  const auto head_length = head_length_of(request.headers.get(kHeadLength));
  DecodedInference decoded = decode_inference(body_text(request, BodyPolicy::kInference), head_length, model->spec(),
                                              services.pool, &request.memory);
  decoded.request.principal = request.principal;
  models::InferRequest wanted = std::move(decoded.request);
  wanted.memory = std::move(request.memory);
  auto outputs =
      std::make_shared<std::vector<models::InferOutput>>(model->batcher().infer(std::move(wanted), request.waiter));
  const core::MemoryReservation held_text = hold_text(services, decoded, *outputs);
  EncodedInference encoded = encode_inference(model->spec(), decoded, *outputs);
  if (!encoded.has_binary) return json(200, std::move(encoded.head));
  const std::string length = std::to_string(encoded.head.size());
  size_t bytes = 0;
  for (const auto piece : encoded.pieces) bytes += piece.size();
  if (bytes <= kCopied) {
    for (const auto piece : encoded.pieces)
      encoded.head.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return content(200, "application/octet-stream", std::move(encoded.head)).with(kHeadLength, length);
  }
  struct Kept {
    std::string head;
    std::shared_ptr<std::vector<models::InferOutput>> outputs;
  };
  const auto kept = std::make_shared<const Kept>(Kept{std::move(encoded.head), std::move(outputs)});
  MemoryPieces pieces{{std::as_bytes(std::span(kept->head))}, kept, static_cast<int64_t>(kept->head.size())};
  pieces.pieces.insert(pieces.pieces.end(), encoded.pieces.begin(), encoded.pieces.end());
  Response response = memory(200, "application/octet-stream", std::move(pieces));
  response.held_bytes = static_cast<int64_t>(bytes);
  return std::move(response).with(kHeadLength, length);
}

Response ready(Request& request, Services& services) {
  static_cast<void>(services.models.find_ready(request.capture("name"), version_in(request), request.principal));
  return text(200, "ok");
}

}  // namespace

std::vector<Route> inference_routes(Services& services, const ProcessFacts& facts) {
  const auto run = [&services](Request& request) { return infer(request, services); };
  const auto look = [&services](Request& request) { return ready(request, services); };
  return {
      {"GET", "/v2/health/live", "getServerLive", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen,
       [](Request&) { return text(200, "ok"); }},
      {"GET", "/v2/health/ready", "getServerReady", BodyPolicy::kNone, RunOn::kReactor, Access::kOpen,
       [&services, facts](Request&) {
         if (is_ready(services, facts)) return text(200, "ok");
         return text(503, "not ready").with("Retry-After", "2");
       }},
      {"GET", "/v2/models/{name}/ready", "getModelReady", BodyPolicy::kNone, RunOn::kReactor, Access::kReader, look},
      {"GET", "/v2/models/{name}/versions/{version}/ready", "getModelVersionReady", BodyPolicy::kNone, RunOn::kReactor,
       Access::kReader, look},
      {"POST", "/v2/models/{name}/infer", "infer", BodyPolicy::kInference, RunOn::kWorker, Access::kUser, run},
      {"POST", "/v2/models/{name}/versions/{version}/infer", "inferVersion", BodyPolicy::kInference, RunOn::kWorker,
       Access::kUser, run},
  };
}

}  // namespace meshd::api
