#include "api/client/transfer/upload.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

namespace meshd::client {
namespace {

constexpr int64_t kSmall = 64 << 10;        ///< bytes that are sent with the operation
constexpr size_t kBlock = size_t{8} << 20;  ///< of standard input, kept until the server has it
constexpr int kMostRetries = 8;             ///< without a byte that got through in between
constexpr auto kRetryPause = std::chrono::milliseconds(250);
constexpr const char* kBytes = "application/octet-stream";

std::optional<int64_t> number_in(const std::string& text) {
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

/// One upload of the server's.
class Resumable {
 public:
  Resumable(Connection& connection, std::string address, int64_t total, ProgressBar& bar)
      : connection_(connection), address_(std::move(address)), total_(total), bar_(bar) {}

  /// Sends `body`, which begins at `begin` of the upload, from where the server has it to its end. The answer to the
  /// last request; with `is_last` that of the operation.
  Answer append(int64_t begin, const Body& body, bool is_last) {
    const int64_t end = begin + size_of(body);
    int64_t offset = begin;
    for (int tries = 0;;) {
      try {
        return patch(offset, rest_of(body, offset - begin), is_last);
      } catch (const Disconnected& lost) {
        const int64_t before = offset;
        offset = std::clamp(wait_for_offset(lost, tries), begin, end);
        if (offset > before) tries = 0;
        // All of it is there and nothing is to follow: what was lost is the answer alone.
        if (offset == end && !is_last) return {};
      }
    }
  }

 private:
  static Body rest_of(const Body& body, int64_t skipped) {
    Body out;
    for (const BodyPart& part : body) {
      const int64_t taken = std::min(skipped, part.size);
      skipped -= taken;
      if (taken == part.size) continue;
      BodyPart rest = part;
      if (part.file == nullptr) rest.text.erase(0, static_cast<size_t>(taken));
      rest.offset += taken;
      rest.size -= taken;
      out.push_back(std::move(rest));
    }
    return out;
  }

  Answer patch(int64_t offset, Body body, bool is_last) {
    Ask ask{.method = "PATCH", .target = address_};
    ask.headers = {{"Upload-Offset", std::to_string(offset)}, {"Upload-Complete", is_last ? "?1" : "?0"}};
    ask.content_type = "application/partial-upload";
    ask.body = std::move(body);
    ask.sent = [&](int64_t sent) { bar_.bytes(offset + sent, total_); };
    return connection_.send(ask);
  }

  /// Asks until the server tells how much it has. Throws `lost` after kMostRetries without an answer or without
  /// progress.
  int64_t wait_for_offset(const Disconnected& lost, int& tries) {
    for (auto pause = kRetryPause; ++tries < kMostRetries; pause *= 2) {
      bar_.show(-1, "the connection was lost, resuming");
      std::this_thread::sleep_for(pause);
      try {
        const Answer answer = connection_.send({.method = "HEAD", .target = address_});
        if (const auto offset = number_in(answer.header("upload-offset"))) return *offset;
      } catch (const Failure& failure) {
        // The server may be starting again, or ending, which is 503.
        if (failure.code() != kUnavailable) throw;
      }
    }
    throw lost;
  }

  Connection& connection_;
  std::string address_;
  int64_t total_;  ///< -1: not known
  ProgressBar& bar_;
};

Answer send_whole(Connection& connection, const UploadTarget& target, std::string bytes) {
  Ask ask{.method = target.method, .target = target.target, .headers = target.headers, .content_type = kBytes};
  ask.body.push_back(text_part(std::move(bytes)));
  return connection.send(ask);
}

Resumable begin_upload(Connection& connection, const UploadTarget& target, int64_t total, ProgressBar& bar) {
  Ask ask{.method = target.method, .target = target.target, .headers = target.headers, .content_type = kBytes};
  ask.headers.emplace_back("Upload-Complete", "?0");
  if (total >= 0) ask.headers.emplace_back("Upload-Length", std::to_string(total));
  const Answer answer = connection.send(ask);
  return {connection, answer.header("location"), total, bar};
}

}  // namespace

Answer upload(Connection& connection, const UploadTarget& target, Input& input, ProgressBar& bar) {
  if (input.is_file()) {
    const int64_t size = input.size();
    if (size <= kSmall) return send_whole(connection, target, input.read_all(kSmall));
    BodyPart all;
    all.file = &input;
    all.size = size;
    return begin_upload(connection, target, size, bar).append(0, {all}, true);
  }
  std::string block = input.read(kBlock);
  if (static_cast<int64_t>(block.size()) <= kSmall) return send_whole(connection, target, std::move(block));
  Resumable upload = begin_upload(connection, target, -1, bar);
  for (int64_t offset = 0;;) {
    const auto size = static_cast<int64_t>(block.size());
    const bool is_last = block.size() < kBlock;
    const Answer answer = upload.append(offset, {text_part(std::move(block))}, is_last);
    if (is_last) return answer;
    offset += size;
    block = input.read(kBlock);
  }
}

}  // namespace meshd::client
