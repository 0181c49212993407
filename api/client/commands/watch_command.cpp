#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>

#include "api/client/commands/commands.h"
#include "api/client/documents/effect_text.h"
#include "api/client/documents/listing.h"
#include "api/client/text/progress_bar.h"
#include "api/client/transfer/download.h"
#include "api/client/transfer/event_stream.h"
#include "service/core/ids.h"

namespace meshd::client {
namespace {

constexpr const char* kWaitSeconds = "20";

/// Prints what a log tells: with --json each event as a line, else effects on standard output, and progress on a
/// terminal's standard error. Any thread.
class Watcher {
 public:
  Watcher(const CommonOptions& server, std::string label)
      : server_(server), bar_(std::move(label), !server.is_quiet && !server.is_json) {}

  void effect(const Json& effect) {
    const std::lock_guard lock(mutex_);
    const auto sequence = effect.value("sequence", int64_t{0});
    if (sequence <= last_) return;
    last_ = sequence;
    bar_.clear();
    print((server_.is_json ? effect.dump() : effect_text(effect)) + "\n");
  }
  void progress(const Json& event) {
    const std::lock_guard lock(mutex_);
    if (server_.is_json) {
      print(event.dump() + "\n");
      return;
    }
    const Json progress = event.value("progress", Json::object());
    bar_.show(progress.value("percent", -1.0), progress_text(progress));
  }
  /// An event of a stream.
  void take(const std::string& name, const Json& data) {
    if (name == "effect") effect(data);
    if (name == "progress") progress(data);
  }
  void state(const std::string& state) {
    const std::lock_guard lock(mutex_);
    bar_.show(-1, state);
  }
  void end() {
    const std::lock_guard lock(mutex_);
    bar_.clear();
  }
  /// Number of the last effect that was printed.
  int64_t last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  const CommonOptions& server_;
  std::mutex mutex_;
  ProgressBar bar_;
  int64_t last_ = 0;
};

CommonOptions of_streams(CommonOptions options) {
  if (options.timeout_seconds == 0) options.timeout_seconds = kStreamSeconds;
  return options;
}

int watch_session(const CommonOptions& server, const WatchOptions& options) {
  Connection connection(server);
  const Json session = get_document(connection, "/v1/sessions/" + percent_encoded(options.id));
  const int64_t after = options.after >= 0 ? options.after : session.value("last_sequence", int64_t{0});
  Watcher watcher(server, options.id);
  EventReader reader;
  reader.take = [&](const ServerEvent& event) {
    watcher.take(event.name, Json::parse(event.data));
    return event.name != "closed";
  };
  reader.is_cancelled = [] { return false; };
  Connection events(of_streams(server));
  try {
    follow_events(events, options.id, after, reader);
  } catch (const Failure& failure) {
    // It was there, and was deleted while the stream was lost.
    if (failure.code() != kRefused) throw;
  }
  watcher.end();
  return kDone;
}

/// The log up to what the end of a job has put into it; the stream may be behind.
void print_rest(Connection& connection, const std::string& session, const std::string& job, int64_t after,
                Watcher& watcher) {
  for (;;) {
    Query query;
    query.add("after", std::to_string(after)).add("limit", "1000");
    const Json page = get_document(connection, "/v1/sessions/" + session + "/effects" + query.text());
    for (const Json& effect : page.at("items")) {
      after = effect.value("sequence", after);
      if (field_text(effect, "job") == job) watcher.effect(effect);
    }
    if (page.at("items").empty()) return;
  }
}

/// Asks until the job is over.
Json wait_for_job(Connection& connection, const std::string& id, Watcher& watcher) {
  for (;;) {
    Json job = get_document(connection, "/v1/jobs/" + percent_encoded(id) + "?wait=" + kWaitSeconds);
    const std::string state = field_text(job, "state");
    if (state != "queued" && state != "running") return job;
    if (job.value("progress", Json()).is_object()) {
      watcher.progress({{"job", id}, {"progress", job["progress"]}});
    } else {
      watcher.state(state);
    }
  }
}

int watch_job(const CommonOptions& server, const WatchOptions& options) {
  Connection connection(server);
  Json job = get_document(connection, "/v1/jobs/" + percent_encoded(options.id));
  const std::string session = field_text(job, "session");
  const int64_t after = std::max<int64_t>(options.after, 0);
  Watcher watcher(server, options.id);
  std::atomic<bool> is_over{false};
  std::atomic<bool> has_ended{session.empty()};
  Connection events(of_streams(server));
  std::thread thread;
  if (!session.empty()) {
    thread = std::thread([&] {
      EventReader reader;
      reader.is_cancelled = [&] { return is_over.load(); };
      reader.take = [&](const ServerEvent& event) {
        const Json data = Json::parse(event.data);
        if (field_text(data, "job") == options.id) watcher.take(event.name, data);
        return true;
      };
      try {
        follow_events(events, session, after, reader);
      } catch (const Failure&) {
        // Whoever waits for the job hears of the same failure, or prints the rest of the log when the job is over.
      }
      has_ended = true;
    });
  }
  std::exception_ptr lost;
  try {
    job = wait_for_job(connection, options.id, watcher);
  } catch (...) {
    lost = std::current_exception();
  }
  is_over = true;
  // Again and again: it may have been about to connect.
  while (!has_ended) {
    events.stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (thread.joinable()) thread.join();
  if (lost) std::rethrow_exception(lost);
  if (!session.empty()) print_rest(connection, session, options.id, std::max(after, watcher.last()), watcher);
  watcher.end();
  const std::string state = field_text(job, "state");
  if (server.is_json) {
    print(job.dump() + "\n");
  } else {
    const Json error = job.value("error", Json());
    std::fprintf(stderr, "%s\n",
                 error.is_object()
                     ? fmt::format("{}: {} [{}]", state, field_text(error, "detail"), field_text(error, "code")).c_str()
                     : state.c_str());
  }
  return state == "done" ? kDone : state == "cancelled" ? kInterrupted : kRefused;
}

}  // namespace

int watch(const CommonOptions& server, const WatchOptions& options) {
  return core::looks_like_id(options.id, "job") ? watch_job(server, options) : watch_session(server, options);
}

}  // namespace meshd::client
