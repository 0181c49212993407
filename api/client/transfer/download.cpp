#include "api/client/transfer/download.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "api/client/text/terminal_text.h"

namespace meshd::client {
namespace {

constexpr int kMostResumes = 8;
constexpr auto kResumePause = std::chrono::milliseconds(250);

/// False where the descriptor takes no more.
bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

int64_t length_of(const Answer& head) {
  const std::string text = head.header("content-length");
  return text.empty() ? -1 : std::strtoll(text.c_str(), nullptr, 10);
}

}  // namespace

Output::Output(std::string path) : path_(std::move(path)) {
  if (path_ == "-") {
    descriptor_ = ::dup(STDOUT_FILENO);
  } else {
    struct stat status {};
    const bool exists = ::stat(path_.c_str(), &status) == 0;
    const bool is_special = exists && !S_ISREG(status.st_mode);
    partial_ = is_special ? "" : fmt::format("{}.{}.part", path_, ::getpid());
    if (is_special) {
      descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    } else {
      // In a folder that others may write to, nobody has put a link there that leads elsewhere. A process of the same
      // number may have left its part.
      ::unlink(partial_.c_str());
      descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      // What was there for its owner alone stays so.
      if (descriptor_ >= 0 && exists) ::fchmod(descriptor_, status.st_mode & 0777);
    }
  }
  if (descriptor_ < 0) {
    partial_.clear();
    fail();
  }
}

Output::~Output() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!partial_.empty()) ::unlink(partial_.c_str());
}

void Output::fail() const {
  // The reader of a pipe that has seen enough.
  if (errno == EPIPE) _exit(kDone);
  throw Failure(kOutputFailed, fmt::format("{} cannot be written: {}", path_ == "-" ? "standard output" : path_,
                                           std::strerror(errno)));
}

void Output::write(std::string_view bytes) {
  if (!write_all(descriptor_, bytes)) fail();
  size_ += static_cast<int64_t>(bytes.size());
}

void Output::end() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0) fail();
  if (partial_.empty()) return;
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail();
  partial_.clear();
}

Answer download(Connection& connection, Ask ask, Output& output, ProgressBar& bar) {
  Answer first;
  ask.receiver = [&](const Answer& head, std::string_view bytes) {
    if (output.size() == 0) first = head;
    output.write(bytes);
    bar.bytes(output.size(), length_of(first));
    return true;
  };
  const std::vector<std::pair<std::string, std::string>> headers = ask.headers;
  auto pause = kResumePause;
  for (int tries = 0;; ++tries) {
    const int64_t before = output.size();
    try {
      Answer answer = connection.send(ask);
      if (before == 0) first = std::move(answer);
      output.end();
      return first;
    } catch (const Failure& failure) {
      // Lost, or 503: the server is ending or full.
      if (failure.code() != kUnavailable) throw;
      if (output.size() > before) {
        tries = 0;
        pause = kResumePause;
      }
      const std::string tag = first.header("etag");
      const bool may_resume = ask.method == "GET" && first.header("accept-ranges") == "bytes" && !tag.empty();
      if (!may_resume || tries == kMostResumes) throw;
      bar.show(-1, "the connection was lost, resuming");
      std::this_thread::sleep_for(pause);
      pause *= 2;
      ask.headers = headers;
      ask.headers.emplace_back("Range", fmt::format("bytes={}-", output.size()));
      ask.headers.emplace_back("If-Range", tag);
      ask.receiver = [&, at = output.size()](const Answer& head, std::string_view bytes) {
        // 200: the data has changed meanwhile, and what is there is of the old.
        if (head.status != 206 && output.size() == at) {
          throw Failure(kRefused, "the array changed while it was downloaded; ask again");
        }
        output.write(bytes);
        bar.bytes(output.size(), length_of(first));
        return true;
      };
    }
  }
}

void print(std::string_view text) {
  if (write_all(STDOUT_FILENO, text_for(STDOUT_FILENO, text))) return;
  if (errno == EPIPE) _exit(kDone);
  throw Failure(kOutputFailed, fmt::format("standard output cannot be written: {}", std::strerror(errno)));
}

}  // namespace meshd::client
