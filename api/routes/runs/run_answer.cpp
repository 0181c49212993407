#include "api/routes/runs/run_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "api/routes/answer_file.h"
#include "api/routes/arrays/array_stream.h"
#include "service/arrays/regions/region.h"

namespace meshd::api {
namespace {

constexpr size_t kTimingBytes = 256;

/// With four decimals, by integers: each answer has eleven of them. 0 for what is negative.
void append_decimal(std::string& out, double value) {
  constexpr int64_t kOne = 10'000;
  const auto parts = std::max<int64_t>(std::llround(value * kOne), 0);
  const fmt::format_int whole(parts / kOne), rest(kOne + parts % kOne);  // a 1 before the four digits
  out.append(whole.data(), whole.size()).append(1, '.').append(rest.data() + 1, rest.size() - 1);
}

}  // namespace

// In milliseconds with four decimals (a small run takes less than a microsecond); the stages add up to `total`.
std::string server_timing(const jobs::JobTimings& job, const RequestTimes& request) {
  const auto ms = [](std::chrono::steady_clock::duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  const double in_job = job.lower_ms + job.bind_ms + job.queue_ms + job.run_ms + job.commit_ms;
  std::string out;
  out.reserve(kTimingBytes);
  const auto add = [&out](std::string_view stage, double taken) {
    if (!out.empty()) out += ", ";
    out.append(stage).append(";dur=");
    append_decimal(out, taken);
  };
  add("receive", ms(request.handled - request.received));
  add("decode", ms(request.decoded - request.handled) - job.parse_ms);  // the text is parsed as it is decoded
  add("parse", job.parse_ms);
  add("lower", job.lower_ms);
  add("bind", job.bind_ms);
  add("queue", job.queue_ms);
  add("run", job.run_ms);
  add("commit", job.commit_ms);
  add("encode", ms(request.encoded - request.done));
  add("other", ms(request.done - request.decoded) - in_job);
  add("total", ms(request.encoded - request.received));
  return out;
}

std::optional<DataForm> results_file(const Request& request, const jobs::JobRequest& job) {
  const FormRow* row = file_beside_json(request);
  if (row == nullptr) return std::nullopt;
  if (job.results != jobs::ResultMode::kInline) {
    throw core::Error("not_acceptable",
                      fmt::format("Accept asks for the results as {}, and /results/encoding says that "
                                  "none come with the answer; leave one of the two out",
                                  row->media));
  }
  if (row->form == DataForm::kNpy && job.program->results.size() != 1) {
    throw core::Error("not_acceptable", fmt::format("a .npy file holds one array, the program has {} results; accept "
                                                    "application/zip or application/x-safetensors",
                                                    job.program->results.size()));
  }
  return row->form;
}

Response send_results(const Request& request, Services& services, const jobs::JobResult& result,
                      const jobs::ResultForm& form, DataForm file) {
  const PageMemory pages = page_memory(services);
  std::vector<FileEntry> entries;
  jobs::JobResult rest = result;
  int64_t held_bytes = 0;
  for (jobs::JobValue& value : rest.results) {
    auto reader = counted_reader(pages, value.layout, value.type.dtype, std::move(value.shards),
                                 arrays::full_slices(value.type.dims));
    held_bytes += tensor::byte_count(value.type);
    entries.push_back({std::to_string(entries.size()), value.type, std::move(reader)});
    value.shards.clear();
  }
  const std::optional<std::string> answer = answer_field(encode_result(rest, form));
  if (!answer && !rest.effects.empty() && rest.job.empty()) {
    throw core::Error(
        "not_acceptable",
        fmt::format("the run has {} effects, which do not fit into a header field beside a file of results "
                    "and are kept nowhere: accept application/json, or run in a session or with an "
                    "Idempotency-Key",
                    rest.effects.size()));
  }
  Response response = send_file(request, std::move(entries), file, ZipMethod::kStored, "");
  response.held_bytes = held_bytes;
  note_answer(response, answer);
  return response;
}

}  // namespace meshd::api
