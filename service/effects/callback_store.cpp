#include "service/effects/callback_store.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"
#include "service/effects/value_text.h"

namespace meshd::effects {
namespace {

// Values without bytes represent types.
std::vector<tensor::DenseValue> empty_values(const std::vector<tensor::TensorType>& types) {
  std::vector<tensor::DenseValue> out;
  for (const tensor::TensorType& type : types) {
    tensor::TensorType marker = type;
    marker.dims.push_back(0);  // of no elements
    out.push_back(tensor::new_dense(marker));
  }
  return out;
}

bool is_over(const std::optional<storage::JobRow>& job) {
  return !job || (job->state != storage::JobState::kQueued && job->state != storage::JobState::kRunning);
}

SessionCallback from_row(const storage::CallbackRow& row, bool job_is_over) {
  SessionCallback out;
  out.number = row.number;
  out.job = row.job;
  out.request = callback_from_text(row.call, row.request);
  out.created = row.created;
  if (row.answer) {
    out.state = CallbackState::kAnswered;
    if (!asks_for_parts(out)) out.reply = values_from_text(*row.answer);
  } else if (job_is_over && !asks_for_parts(out)) {
    out.state = CallbackState::kWithdrawn;
  }
  return out;
}

SessionCallback find(storage::Reader& reader, const std::string& session, int64_t number,
                     const storage::AdmitRow& admit) {
  const auto row = reader.callback(session, number, admit);
  if (!row) throw core::Error("not_found", fmt::format("there is no callback request {} in this session", number));
  return from_row(*row, is_over(reader.job_of_session(session, row->job)));
}

}  // namespace

std::string callback_to_text(const CallbackRequest& request) {
  std::string out;
  put_number<int64_t>(out, request.callback);
  put_number<int64_t>(out, request.shard);
  put_number<int64_t>(out, request.device);
  put_number<int64_t>(out, request.point);
  put_number<uint8_t>(out, request.ordered ? 1 : 0);
  put_number<uint32_t>(out, static_cast<uint32_t>(request.name.size()));
  out += request.name;
  out += values_to_text(request.values);
  out += values_to_text(empty_values(request.expected));
  return out;
}

CallbackRequest callback_from_text(int64_t call, std::string_view text) {
  CallbackRequest out;
  out.call = call;
  out.callback = take_number<int64_t>(text);
  out.shard = take_number<int64_t>(text);
  out.device = take_number<int64_t>(text);
  out.point = take_number<int64_t>(text);
  out.ordered = take_number<uint8_t>(text) != 0;
  const auto length = take_number<uint32_t>(text);
  if (text.size() < length) throw core::Error("internal", "a stored callback request is cut short");
  out.name = text.substr(0, length);
  text.remove_prefix(length);
  out.values = read_values(text);
  for (tensor::DenseValue& marker : read_values(text)) {
    marker.type.dims.pop_back();
    out.expected.push_back(std::move(marker.type));
  }
  return out;
}

std::string_view to_string(CallbackState state) {
  switch (state) {
    case CallbackState::kOpen:
      return "open";
    case CallbackState::kAnswered:
      return "answered";
    case CallbackState::kWithdrawn:
      return "withdrawn";
  }
  return "";
}

storage::CallbackRow CallbackStore::row_of(const std::string& session, const std::string& asker,
                                           const CallbackRequest& request) const {
  storage::CallbackRow row;
  row.session = session;
  row.job = asker;
  row.call = request.call;
  row.request = callback_to_text(request);
  row.created = clock_.wall();
  return row;
}

SessionCallback CallbackStore::ask(const std::string& session, const std::string& job, const CallbackRequest& request) {
  const storage::CallbackRow row = row_of(session, job, request);
  storage::CallbackRow stored;
  catalog_.write([&](storage::Transaction& transaction) { stored = transaction.insert_callback(row); });
  wakes_.notify(session);
  return from_row(stored, false);
}

SessionCallback CallbackStore::get(const std::string& session, int64_t number, const storage::AdmitRow& admit) {
  return catalog_.read([&](storage::Reader& reader) { return find(reader, session, number, admit); });
}

std::vector<SessionCallback> CallbackStore::open(const std::string& session, int64_t after, int64_t limit,
                                                 const storage::AdmitRow& admit) {
  std::vector<SessionCallback> out;
  catalog_.read([&](storage::Reader& reader) {
    for (const storage::CallbackRow& row : reader.open_callbacks(session, after, limit, admit))
      out.push_back(from_row(row, false));
  });
  return out;
}

void CallbackStore::ask_for_parts(const std::string& session, const std::string& array,
                                  const std::vector<CallbackRequest>& callbacks) {
  catalog_.write([&](storage::Transaction& transaction) {
    const auto found = transaction.session(session);
    if (!found) throw core::Error("not_found", "there is no session '" + session + "'");
    if (found->state == storage::SessionState::kClosed)
      throw core::Error("session_closed", "session '" + session + "' is closed and asks nothing");
    for (const CallbackRequest& request : callbacks)
      static_cast<void>(transaction.insert_callback(row_of(session, array, request)));
  });
  wakes_.notify(session);
}

SessionCallback CallbackStore::note_parts(const std::string& session, int64_t number, const std::string& digest) {
  SessionCallback asked = get(session, number);
  catalog_.write([&](storage::Transaction& transaction) {
    if (transaction.callback(session, number)) transaction.reply_to_callback(session, number, digest);
  });
  asked.state = CallbackState::kAnswered;
  wakes_.notify(session);
  return asked;
}

void CallbackStore::withdraw(const std::string& asker) {
  const auto asked = catalog_.read([&](storage::Reader& reader) { return reader.callbacks_of_job(asker); });
  const bool has_open = std::any_of(asked.begin(), asked.end(), [](const auto& row) { return !row.answer; });
  if (!has_open) return;
  catalog_.write([&](storage::Transaction& transaction) { transaction.drop_open_callbacks(asker); });
}

SessionCallback CallbackStore::reply(const std::string& session, int64_t number,
                                     const std::vector<tensor::DenseValue>& values) {
  check_reply(get(session, number).request, values);
  const std::string text = values_to_text(values);
  catalog_.write([&](storage::Transaction& transaction) {
    const auto row = transaction.callback(session, number);
    if (row && !row->answer && is_over(transaction.job_of_session(session, row->job))) {
      throw core::Error("job_finished",
                        fmt::format("callback request {} was withdrawn: job '{}' is over", number, row->job));
    }
    transaction.reply_to_callback(session, number, text);
  });
  wakes_.notify(session);
  return get(session, number);
}

void check_reply(const CallbackRequest& request, const std::vector<tensor::DenseValue>& values) {
  core::Diagnostics wrong;
  const auto& expected = request.expected;
  if (values.size() != expected.size()) {
    wrong.add("/values", fmt::format("expected {} values, got {}", expected.size(), values.size()));
  }
  for (size_t i = 0; i < values.size() && i < expected.size(); ++i) {
    if (values[i].type == expected[i]) continue;
    wrong.add(fmt::format("/values/{}", i),
              fmt::format("expected tensor<{}>, got tensor<{}>", tensor::to_string(expected[i]),
                          tensor::to_string(values[i].type)));
  }
  wrong.throw_if_any("invalid_request");
}

bool asks_for_parts(const SessionCallback& asked) { return asked.job.starts_with("arr_"); }

}  // namespace meshd::effects
