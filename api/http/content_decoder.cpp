#include "api/http/content_decoder.h"

#include <algorithm>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include <zlib.h>
#include <zstd.h>

#include "api/http/characters.h"
#include "service/core/error.h"

namespace meshd::api {

namespace {

constexpr int kGzipReadWindow = 15 + 16;  // zlib: gzip only
constexpr int kDeflateReadWindow = 15;    // zlib: its own format, which HTTP calls deflate (RFC 9110 8.4.1.2)
constexpr int kZstdWindowLog = 23;        // 8 MiB of memory a body; RFC 8878 requires decoders to support it

// gzip and deflate: zlib's two formats.
class ZlibDecoder final : public ContentDecoder {
 public:
  explicit ZlibDecoder(int window) : window_(window) {
    if (inflateInit2(&stream_, window) != Z_OK) throw std::bad_alloc();
  }
  ~ZlibDecoder() override { inflateEnd(&stream_); }
  ZlibDecoder(const ZlibDecoder&) = delete;
  ZlibDecoder& operator=(const ZlibDecoder&) = delete;

  Step step(std::span<const std::byte> input, std::span<std::byte> output) override {
    constexpr size_t kMost = std::numeric_limits<uInt>::max();
    const size_t input_size = std::min(input.size(), kMost);
    const size_t output_size = std::min(output.size(), kMost);
    if (ended_) {
      if (input_size == 0) return {};
      if (window_ == kDeflateReadWindow)
        throw core::Error("malformed_body", "the body goes on behind the end of its deflate data");
      inflateReset(&stream_);  // the next member of several
      ended_ = false;
    }
    // zlib takes input as mutable for historical reasons and does not write to it.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input.data()));
    stream_.avail_in = static_cast<uInt>(input_size);
    stream_.next_out = reinterpret_cast<Bytef*>(output.data());
    stream_.avail_out = static_cast<uInt>(output_size);
    const int outcome = inflate(&stream_, Z_NO_FLUSH);
    if (outcome == Z_MEM_ERROR) throw std::bad_alloc();
    if (outcome != Z_OK && outcome != Z_STREAM_END && outcome != Z_BUF_ERROR) {
      throw core::Error("malformed_body",
                        window_ == kGzipReadWindow
                            ? "the body is not gzip data as its Content-Encoding says"
                            : "the body is not deflate data (the zlib format) as its Content-Encoding says");
    }
    ended_ = outcome == Z_STREAM_END;
    return {input_size - stream_.avail_in, output_size - stream_.avail_out};
  }
  [[nodiscard]] bool complete() const override { return ended_; }

 private:
  const int window_;
  z_stream stream_{};
  bool ended_ = false;
};

class ZstdDecoder final : public ContentDecoder {
 public:
  explicit ZstdDecoder(core::MemoryReservation memory)
      : memory_(std::move(memory)), context_(ZSTD_createDCtx(), &ZSTD_freeDCtx) {
    if (!context_) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kZstdWindowLog);
  }

  Step step(std::span<const std::byte> input, std::span<std::byte> output) override {
    if (input.empty() && left_ == 0) return {};
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer out{output.data(), output.size(), 0};
    left_ = ZSTD_decompressStream(context_.get(), &out, &in);
    if (ZSTD_isError(left_) != 0) {
      throw core::Error("malformed_body",
                        "the body is not zstd data (window at most 8 MiB) as its Content-Encoding says");
    }
    hold_window();
    return {in.pos, out.pos};
  }
  [[nodiscard]] bool complete() const override { return left_ == 0; }

 private:
  // The frame's head has said how large it is.
  void hold_window() {
    const int64_t more = static_cast<int64_t>(ZSTD_sizeof_DCtx(context_.get())) - memory_.bytes();
    if (more <= 0 || memory_.try_grow_beyond(more)) return;
    throw core::Error("memory_full", "other requests hold the memory that this one needs to decode its body")
        .with_retry_after(1);
  }

  core::MemoryReservation memory_;
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context_;
  size_t left_ = 1;  ///< what the library still expects; 0 at the end of a frame
};

}  // namespace

std::unique_ptr<ContentDecoder> make_content_decoder(std::string_view content_encoding,
                                                     core::MemoryReservation memory) {
  if (content_encoding.empty() || equal_ignoring_case(content_encoding, "identity")) return nullptr;
  if (equal_ignoring_case(content_encoding, "gzip") || equal_ignoring_case(content_encoding, "x-gzip")) {
    return std::make_unique<ZlibDecoder>(kGzipReadWindow);
  }
  if (equal_ignoring_case(content_encoding, "deflate")) return std::make_unique<ZlibDecoder>(kDeflateReadWindow);
  if (equal_ignoring_case(content_encoding, "zstd")) return std::make_unique<ZstdDecoder>(std::move(memory));
  throw core::Error("unsupported_media_type", "content encodings taken are gzip, deflate and zstd, one of them, got '" +
                                                  std::string(content_encoding) + "'");
}

}  // namespace meshd::api
