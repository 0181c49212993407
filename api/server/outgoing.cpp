#include "api/server/outgoing.h"

#include <sys/uio.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <string_view>
#include <utility>

namespace meshd::api {

namespace {

constexpr size_t kVectors = 32;
constexpr size_t kSourceBytes = 256 * 1024;
constexpr size_t kChunkHead = 10;  // 8 hex digits and CRLF
constexpr size_t kChunkTail = 7;   // CRLF and, at the end, 0 CRLF CRLF

}  // namespace

void Outgoing::clear() {
  head_.clear();
  body_ = {};
  held_bytes_ = 0;
  if (pieces_.keep || !pieces_.pieces.empty()) pieces_ = {};
  if (buffer_) {
    source_ = {};
    buffer_.reset();
    buffer_begin_ = buffer_end_ = 0;
    source_ended_ = true;
    short_ = false;
  }
  piece_ = 0;
  offset_ = 0;
  total_ = 0;
  written_ = 0;
}

void Outgoing::start(Response&& response, bool chunk) {
  chunk_ = chunk;
  held_bytes_ = response.held_bytes;
  total_ = static_cast<int64_t>(head_.size());
  if (auto* bytes = std::get_if<std::string>(&response.body)) {
    body_ = std::move(*bytes);
    total_ += static_cast<int64_t>(body_.size());
  } else if (auto* pieces = std::get_if<MemoryPieces>(&response.body)) {
    pieces_ = std::move(*pieces);
    for (const auto& piece : pieces_.pieces) total_ += static_cast<int64_t>(piece.size());
  } else if (auto* source = std::get_if<BodySource>(&response.body)) {
    source_ = std::move(*source);
    source_left_ = source_.length.value_or(INT64_MAX);
    source_ended_ = source_left_ == 0;
    buffer_ = std::make_unique_for_overwrite<char[]>(kChunkHead + kSourceBytes + kChunkTail);
  }
}

void Outgoing::pull() {
  const size_t most = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(kSourceBytes), source_left_));
  char* data = buffer_.get() + kChunkHead;
  size_t count = 0;
  // Small pieces are put together, so that a source that makes a line at a time does not cost a write a line.
  while (count < most) {
    const size_t made = source_.pull(std::as_writable_bytes(std::span(data + count, most - count)));
    if (made == 0) {
      source_ended_ = true;
      break;
    }
    count += made;
  }
  source_left_ -= source_.length ? static_cast<int64_t>(count) : 0;
  if (source_.length && source_ended_ && source_left_ > 0) short_ = true;
  if (source_.length && source_left_ == 0) source_ended_ = true;
  buffer_begin_ = kChunkHead;
  buffer_end_ = kChunkHead + count;
  if (chunk_) {
    if (count > 0) {
      std::array<char, kChunkHead> size{};
      const auto end = std::to_chars(size.data(), size.data() + size.size() - 2, count, 16).ptr;
      const std::string_view text(size.data(), static_cast<size_t>(end - size.data()));
      buffer_begin_ = kChunkHead - text.size() - 2;
      std::copy(text.begin(), text.end(), buffer_.get() + buffer_begin_);
      buffer_[kChunkHead - 2] = '\r';
      buffer_[kChunkHead - 1] = '\n';
    }
    const std::string_view tail = count > 0 ? (source_ended_ ? "\r\n0\r\n\r\n" : "\r\n") : "0\r\n\r\n";
    std::copy(tail.begin(), tail.end(), buffer_.get() + buffer_end_);
    buffer_end_ += tail.size();
  }
  total_ += static_cast<int64_t>(buffer_end_ - buffer_begin_);
}

size_t Outgoing::gather(iovec* out, size_t most) const {
  size_t used = 0;
  size_t skip = offset_;
  const auto put = [&](const void* data, size_t size) {
    if (size > skip && used < most) {
      out[used++] = {const_cast<char*>(static_cast<const char*>(data)) + skip, size - skip};
    }
    skip = 0;
  };
  for (size_t i = piece_; used < most; ++i) {
    if (i == 0) {
      put(head_.data(), head_.size());
    } else if (i == 1) {
      put(body_.data(), body_.size());
    } else if (i < pieces_.pieces.size() + 2) {
      put(pieces_.pieces[i - 2].data(), pieces_.pieces[i - 2].size());
    } else {
      put(buffer_.get() + buffer_begin_, buffer_end_ - buffer_begin_);
      break;
    }
  }
  return used;
}

void Outgoing::advance(int64_t bytes) {
  written_ += bytes;
  auto left = static_cast<size_t>(bytes);
  while (left > 0) {
    if (piece_ >= pieces_.pieces.size() + 2) {
      buffer_begin_ += left;
      return;
    }
    const size_t size = piece_ == 0 ? head_.size() : piece_ == 1 ? body_.size() : pieces_.pieces[piece_ - 2].size();
    const size_t step = std::min(left, size - offset_);
    offset_ += step;
    left -= step;
    if (offset_ == size) {
      ++piece_;
      offset_ = 0;
    }
  }
}

namespace {

/// The progress of a response when the stream wrote no byte.
Outgoing::Progress stopped(ByteStream::Outcome outcome) {
  return outcome == ByteStream::Outcome::kWouldBlockWrite ? Outgoing::Progress::kBlocked : Outgoing::Progress::kBroken;
}

}  // namespace

Outgoing::Progress Outgoing::write(ByteStream& transport, int64_t budget, FrontMetrics& metrics) {
  while (true) {
    if (pending() == 0) {
      if (!source_ended_) return Progress::kNeedsPull;
      if (short_) return Progress::kBroken;
      const ByteStream::Outcome flushed = transport.flush().outcome;
      return flushed == ByteStream::Outcome::kBytes ? Progress::kDone : stopped(flushed);
    }
    // The head waits for the first piece of a source, to leave with it.
    if (written_ == 0 && !source_ended_ && buffer_end_ == 0) return Progress::kNeedsPull;
    if (budget <= 0) return Progress::kYield;
    std::array<iovec, kVectors> vectors{};
    size_t used = gather(vectors.data(), vectors.size());
    int64_t asked = 0;
    for (size_t i = 0; i < used; ++i) {
      const int64_t room = budget - asked;
      if (room <= 0) {
        used = i;
        break;
      }
      vectors[i].iov_len = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(vectors[i].iov_len), room));
      asked += static_cast<int64_t>(vectors[i].iov_len);
    }
    const ByteStream::Result sent = transport.write(std::span(vectors).first(used));
    if (sent.outcome != ByteStream::Outcome::kBytes) return stopped(sent.outcome);
    const auto count = static_cast<int64_t>(sent.bytes);
    metrics.socket_writes.fetch_add(1, std::memory_order_relaxed);
    metrics.bytes_out.fetch_add(count, std::memory_order_relaxed);
    advance(count);
    budget -= count;
  }
}

}  // namespace meshd::api
