#include "api/routes/answer_file.h"

#include "api/json/json.h"

namespace meshd::api {
namespace {

constexpr size_t kLongestAnswerField = 4096;
constexpr DataForm kAnswerForms[] = {DataForm::kJson, DataForm::kNpz, DataForm::kSafetensors, DataForm::kNpy};

}  // namespace

const FormRow* file_beside_json(const Request& request) {
  const FormRow* row = preferred_form(request, kAnswerForms);
  return row == nullptr || row->form == DataForm::kJson ? nullptr : row;
}

std::optional<std::string> answer_field(const std::string& json) {
  std::string out = in_ascii(json);
  return out.size() <= kLongestAnswerField ? std::optional(std::move(out)) : std::nullopt;
}

void note_answer(Response& response, const std::optional<std::string>& answer) {
  response.headers.set("Vary", kVaryByAccept);
  if (answer) response.headers.set("Meshd-Answer", *answer);
}

}  // namespace meshd::api
