#include "api/client/transfer/input.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "api/client/text/failure.h"

namespace meshd::client {
namespace {

/// As many bytes as there are up to `most`; false where reading fails.
bool fill(int descriptor, int64_t offset, size_t most, std::string& out) {
  size_t have = out.size();
  const size_t end = have + most;
  out.resize(end);
  while (have < end) {
    const ssize_t count = offset < 0 ? ::read(descriptor, out.data() + have, end - have)
                                     : ::pread(descriptor, out.data() + have, end - have, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) break;
    have += static_cast<size_t>(count);
    if (offset >= 0) offset += count;
  }
  out.resize(have);
  return true;
}

}  // namespace

Input::Input(std::string path) : path_(std::move(path)) {
  if (path_ == "-") {
    descriptor_ = ::dup(STDIN_FILENO);
  } else {
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  }
  if (descriptor_ < 0) fail("cannot be read");
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail("cannot be read");
  if (S_ISDIR(status.st_mode)) throw Failure(kNoInput, name() + " is a folder");
  if (path_ != "-" && S_ISREG(status.st_mode)) size_ = status.st_size;
}

Input::~Input() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Input::fail(const char* what) const {
  throw Failure(kNoInput, fmt::format("{} {}: {}", name(), what, std::strerror(errno)));
}

std::string Input::name() const { return path_ == "-" ? "standard input" : path_; }

std::string_view Input::head(size_t most) {
  if (head_.size() < most) {
    if (is_file()) {
      head_ = read_at(0, most);
    } else if (!fill(descriptor_, -1, most - head_.size(), head_)) {
      fail("cannot be read");
    }
  }
  return std::string_view(head_).substr(0, most);
}

std::string Input::read_at(int64_t offset, size_t most) const {
  std::string out;
  if (!fill(descriptor_, offset, most, out)) fail("cannot be read");
  return out;
}

std::string Input::read(size_t most) {
  if (is_file()) {
    std::string out = read_at(at_, most);
    at_ += static_cast<int64_t>(out.size());
    return out;
  }
  std::string out = head_.substr(0, most);
  head_.erase(0, out.size());
  if (out.size() < most && !fill(descriptor_, -1, most - out.size(), out)) fail("cannot be read");
  return out;
}

std::string Input::read_all(size_t most) {
  std::string out = read(most + 1);
  if (out.size() > most) throw Failure(kNoInput, fmt::format("{} has more than {} bytes", name(), most));
  return out;
}

}  // namespace meshd::client
