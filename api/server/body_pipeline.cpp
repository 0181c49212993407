#include "api/server/body_pipeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "service/core/error.h"

namespace meshd::api {

namespace {

constexpr int64_t kFreeBytes = int64_t{1} << 20;
constexpr int64_t kRatio = 200;

core::Error too_large(int64_t limit) {
  return core::Error("body_too_large", fmt::format("the body is larger than the {} bytes that are taken here", limit));
}

}  // namespace

BodyPipeline::BodyPipeline(const Head& head, std::unique_ptr<ContentDecoder> decoder, int64_t limit)
    : framing_(head.framing, head.content_length),
      decoder_(std::move(decoder)),
      limit_(limit),
      done_(framing_.ended()) {
  if (head.framing != Framing::kChunked && (!decoder_ || done_)) announced_ = head.content_length;
}

BodyPipeline::Step BodyPipeline::pump(std::string_view raw, std::span<std::byte> destination) {
  Step out;
  while (!done_) {
    out.consumed += framing_.consume_framing(raw.substr(out.consumed));
    if (framing_.ended() && !decoder_) {
      finish();
      break;
    }
    if (out.produced == destination.size()) break;
    const auto room = static_cast<size_t>(std::min<int64_t>(framing_.data_room(), INT64_MAX));
    const size_t available = std::min(room, raw.size() - out.consumed);
    if (available == 0 && !framing_.ended()) break;
    const std::span<std::byte> left = destination.subspan(out.produced);
    const std::string_view data = raw.substr(out.consumed, available);
    ContentDecoder::Step step;
    if (decoder_) {
      step = decoder_->step(std::as_bytes(std::span(data)), left);
      if (step.produced == 0 && framing_.ended()) {
        if (!decoder_->complete()) throw core::Error("malformed_body", "the body ends inside of its content encoding");
        finish();
        break;
      }
      if (step.produced == 0 && step.consumed == 0) {
        throw core::Error("malformed_body", "the body does not go on as its content encoding wants");
      }
    } else {
      step.consumed = step.produced = std::min(available, left.size());
      std::memcpy(left.data(), data.data(), step.produced);
    }
    if (step.consumed != 0) framing_.advance(static_cast<int64_t>(step.consumed));
    if (digest_) digest_->update(std::as_bytes(std::span(data.substr(0, step.consumed))));
    coded_ += static_cast<int64_t>(step.consumed);
    out.consumed += step.consumed;
    out.produced += step.produced;
    count(step.produced);
  }
  return out;
}

void BodyPipeline::took(std::span<const std::byte> bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  framing_.advance(size);
  coded_ += size;
  if (digest_) digest_->update(bytes);
  count(bytes.size());
  if (framing_.ended()) finish();
}

void BodyPipeline::finish() {
  done_ = true;
  decoder_.reset();  // its window is of no more use, and the handler may take long
  if (digest_) digest_->check();
}

void BodyPipeline::count(size_t produced) {
  produced_ += static_cast<int64_t>(produced);
  if (produced_ > limit_) throw too_large(limit_);
  if (decoder_ && produced_ > kFreeBytes && produced_ / kRatio > coded_) {
    throw core::Error("body_too_large", "the body expands to more than 200 times its size");
  }
}

void BodyPipeline::lower_limit(int64_t limit) {
  limit_ = std::min(limit_, limit);
  if (announced_.value_or(0) > limit_) throw too_large(limit_);
}

std::optional<int64_t> BodyPipeline::raw_left() const {
  if (framing_.ended()) return 0;
  if (framing_.chunked()) return std::nullopt;
  return framing_.data_room();
}

size_t BodyPipeline::skip(std::string_view raw) {
  size_t taken = 0;
  while (!framing_.ended() && taken < raw.size()) {
    taken += framing_.consume_framing(raw.substr(taken));
    const auto data =
        static_cast<size_t>(std::min<int64_t>(framing_.data_room(), static_cast<int64_t>(raw.size() - taken)));
    if (data != 0) framing_.advance(static_cast<int64_t>(data));
    taken += data;
  }
  if (framing_.ended()) done_ = true;
  return taken;
}

}  // namespace meshd::api
