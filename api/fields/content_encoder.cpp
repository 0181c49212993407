#include "api/fields/content_encoder.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <zlib.h>
#include <zstd.h>

#include "api/fields/accept.h"
#include "api/fields/conditions.h"
#include "api/http/characters.h"
#include "service/core/error.h"

namespace meshd::api {

namespace {

constexpr size_t kSmallest = 1024;
constexpr size_t kSample = 64 * 1024;
constexpr size_t kWorthwhile = 10;  // a tenth less, or not at all
constexpr size_t kInput = 256 * 1024;
constexpr int kGzipWriteWindow = 15 + 16;  // zlib: gzip
constexpr int kDeflateWriteWindow = 15;    // zlib: its own format
constexpr int kGzipLevel = 1, kZstdLevel = 1;
// Of what is coded while it is sent: the coder, and what is on its way to it and from it.
constexpr int64_t kZlibBytes = int64_t{768} << 10;
constexpr int64_t kZstdBytes = int64_t{2} << 20;

enum class Coding { kNone, kGzip, kDeflate, kZstd };

/// One coder. One thread.
class Encoder {
 public:
  virtual ~Encoder() = default;
  struct Step {
    size_t consumed = 0, produced = 0;
    bool ended = false;  ///< with `last`: all is out
  };
  virtual Step step(std::span<const std::byte> input, std::span<std::byte> output, bool last) = 0;
};

// gzip and deflate: zlib's two formats.
class ZlibEncoder final : public Encoder {
 public:
  explicit ZlibEncoder(int window) {
    if (deflateInit2(&stream_, kGzipLevel, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  }
  ~ZlibEncoder() override { deflateEnd(&stream_); }
  ZlibEncoder(const ZlibEncoder&) = delete;
  ZlibEncoder& operator=(const ZlibEncoder&) = delete;

  Step step(std::span<const std::byte> input, std::span<std::byte> output, bool last) override {
    constexpr size_t kMost = std::numeric_limits<uInt>::max();
    const size_t input_size = std::min(input.size(), kMost);
    const size_t output_size = std::min(output.size(), kMost);
    // zlib takes input as mutable for historical reasons and does not write to it.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input.data()));
    stream_.avail_in = static_cast<uInt>(input_size);
    stream_.next_out = reinterpret_cast<Bytef*>(output.data());
    stream_.avail_out = static_cast<uInt>(output_size);
    const bool all = last && input_size == input.size();
    const int outcome = deflate(&stream_, all ? Z_FINISH : Z_NO_FLUSH);
    return {input_size - stream_.avail_in, output_size - stream_.avail_out, outcome == Z_STREAM_END};
  }

 private:
  z_stream stream_{};
};

class ZstdEncoder final : public Encoder {
 public:
  ZstdEncoder() : context_(ZSTD_createCCtx(), &ZSTD_freeCCtx) {
    if (!context_) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kZstdLevel);
  }

  Step step(std::span<const std::byte> input, std::span<std::byte> output, bool last) override {
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer out{output.data(), output.size(), 0};
    const size_t left = ZSTD_compressStream2(context_.get(), &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left) != 0)
      throw core::Error("internal", "the answer could not be coded").with_internal(ZSTD_getErrorName(left));
    return {in.pos, out.pos, last && left == 0};
  }

 private:
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context_;
};

std::unique_ptr<Encoder> make_encoder(Coding coding) {
  if (coding == Coding::kGzip) return std::make_unique<ZlibEncoder>(kGzipWriteWindow);
  if (coding == Coding::kDeflate) return std::make_unique<ZlibEncoder>(kDeflateWriteWindow);
  return std::make_unique<ZstdEncoder>();
}

std::string encode(Coding coding, std::span<const std::byte> input) {
  const std::unique_ptr<Encoder> encoder = make_encoder(coding);
  std::string out;
  size_t filled = 0;
  while (true) {
    if (filled == out.size()) out.resize(std::max<size_t>(out.size() * 2, input.size() / 4 + 1024));
    const Encoder::Step step = encoder->step(input, std::as_writable_bytes(std::span(out)).subspan(filled), true);
    input = input.subspan(step.consumed);
    filled += step.produced;
    if (step.ended) break;
  }
  out.resize(filled);
  return out;
}

/// The weight of a coding in thousandths (RFC 9110 12.5.3); nothing when the field does not name it.
std::optional<int> weight_of(std::string_view accept, std::string_view coding) {
  for (Weighted entry; next_weighted(accept, entry);) {
    if (equal_ignoring_case(entry.name, coding)) return entry.weight;
  }
  return std::nullopt;
}

Coding chosen(const Request& request) {
  const std::string accept = request.headers.joined("Accept-Encoding");
  if (accept.empty()) return Coding::kNone;
  const int any = weight_of(accept, "*").value_or(0);
  const int zstd = weight_of(accept, "zstd").value_or(any);
  const int gzip = weight_of(accept, "gzip").value_or(any);
  const int deflate = weight_of(accept, "deflate").value_or(0);
  // Clients of the inference protocol read gzip and deflate alone, whatever their HTTP library asks for.
  const bool is_inference = request.path.starts_with("/v2/");
  if (zstd > 0 && zstd >= gzip && zstd >= deflate && !is_inference) return Coding::kZstd;
  if (gzip > 0 && gzip >= deflate) return Coding::kGzip;
  return deflate > 0 ? Coding::kDeflate : Coding::kNone;
}

enum class Kind { kNone, kText, kArray };

Kind kind_of(std::string_view media) {
  media = media.substr(0, media.find(';'));
  if (media == "text/event-stream") return Kind::kNone;
  if (media.starts_with("text/") || media.ends_with("json") || media.ends_with("yaml") || media.ends_with("+xml"))
    return Kind::kText;
  if (media == "application/octet-stream" || media == "application/x-npy" || media == "application/x-safetensors")
    return Kind::kArray;
  return Kind::kNone;
}

/// The first bytes of several pieces.
std::string sample_of(const MemoryPieces& pieces) {
  std::string out;
  for (const auto& piece : pieces.pieces) {
    const size_t take = std::min(piece.size(), kSample - out.size());
    out.append(reinterpret_cast<const char*>(piece.data()), take);
    if (out.size() == kSample) break;
  }
  return out;
}

bool pays(size_t before, size_t after) { return after + before / kWorthwhile <= before; }

/// Bytes to be coded, a run at a time; empty at the end. A run stays until the next call.
using Runs = std::function<std::span<const std::byte>()>;

/// The pieces are not copied.
Runs runs_of(MemoryPieces pieces) {
  return [pieces = std::move(pieces), next = size_t{0}]() mutable -> std::span<const std::byte> {
    while (next < pieces.pieces.size()) {
      if (const auto piece = pieces.pieces[next++]; !piece.empty()) return piece;
    }
    return {};
  };
}

/// `start` has been pulled already.
Runs runs_of(std::vector<std::byte> start, std::function<size_t(std::span<std::byte>)> pull) {
  return [run = std::move(start), pull = std::move(pull), is_first = true]() mutable -> std::span<const std::byte> {
    if (std::exchange(is_first, false) && !run.empty()) return run;
    run.resize(kInput);
    return std::span<const std::byte>(run).first(pull(run));
  };
}

/// As many bytes as a sample has, or all there are.
std::vector<std::byte> pull_sample(const std::function<size_t(std::span<std::byte>)>& pull) {
  std::vector<std::byte> out(kSample);
  size_t filled = 0;
  while (filled < out.size()) {
    const size_t got = pull(std::span(out).subspan(filled));
    if (got == 0) break;
    filled += got;
  }
  out.resize(filled);
  return out;
}

/// BodySource::pull of the bytes as they are.
std::function<size_t(std::span<std::byte>)> plain_source(Runs runs) {
  return [next = std::move(runs), run = std::span<const std::byte>()](std::span<std::byte> out) mutable {
    if (run.empty()) run = next();
    const size_t count = std::min(run.size(), out.size());
    std::copy_n(run.begin(), count, out.begin());
    run = run.subspan(count);
    return count;
  };
}

/// Coded while it is sent.
BodySource coded_source(Coding coding, Runs runs) {
  struct State {
    Runs next;
    std::unique_ptr<Encoder> encoder;
    std::span<const std::byte> input;
    bool at_end = false;
    bool ended = false;
  };
  auto state = std::make_shared<State>();
  state->next = std::move(runs);
  state->encoder = make_encoder(coding);
  return {std::nullopt, [state](std::span<std::byte> out) {
            size_t filled = 0;
            while (!state->ended && filled < out.size()) {
              if (state->input.empty() && !state->at_end) {
                state->input = state->next();
                state->at_end = state->input.empty();
              }
              const std::span<const std::byte> input = state->input.first(std::min(state->input.size(), kInput));
              const Encoder::Step step = state->encoder->step(input, out.subspan(filled), state->at_end);
              state->input = state->input.subspan(step.consumed);
              filled += step.produced;
              state->ended = step.ended;
            }
            return filled;
          }};
}

void note_vary(Response& response) {
  std::string vary = response.headers.joined("Vary");
  if (vary.find("Accept-Encoding") != std::string::npos) return;
  if (!vary.empty()) vary += ", ";
  response.headers.set("Vary", vary + "Accept-Encoding");
}

}  // namespace

void encode_content(const Request& request, Response& response, bool keep_pieces, core::MemoryReservation& memory) {
  if (response.headers.has("Content-Encoding") || response.status == 204 || response.status == 206 ||
      response.status == 304)
    return;
  const Kind kind = kind_of(response.headers.get("Content-Type").value_or(""));
  if (kind == Kind::kNone) return;
  const auto size = body_size(response);
  if (!size || *size < static_cast<int64_t>(kSmallest)) return;
  note_vary(response);
  const Coding coding = chosen(request);
  // A range counts the bytes of the plain form: a request with Range gets that form, even without a 206.
  if (coding == Coding::kNone || request.headers.has("Range")) return;
  if (auto* text = std::get_if<std::string>(&response.body)) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(*text));
    if (bytes.size() > kSample && !pays(kSample, encode(coding, bytes.first(kSample)).size())) return;
    std::string coded = encode(coding, bytes);
    if (!pays(bytes.size(), coded.size())) return;
    response.body = std::move(coded);
  } else if (keep_pieces) {
    return;
  } else if (const int64_t coder = coding == Coding::kZstd ? kZstdBytes : kZlibBytes; !memory.try_grow(coder)) {
    return;  // it is sent as it is: who reads it slowly would keep a coder for long
  } else if (auto* pieces = std::get_if<MemoryPieces>(&response.body); pieces != nullptr) {
    const std::string sample = sample_of(*pieces);
    if (!pays(sample.size(), encode(coding, std::as_bytes(std::span(sample))).size())) return memory.shrink(coder);
    response.body = coded_source(coding, runs_of(std::move(*pieces)));
    response.headers.remove("Accept-Ranges");
  } else if (auto* source = std::get_if<BodySource>(&response.body); source != nullptr) {
    std::vector<std::byte> start = pull_sample(source->pull);
    const bool is_worthwhile = pays(start.size(), encode(coding, start).size());
    if (!is_worthwhile) memory.shrink(coder);
    Runs runs = runs_of(std::move(start), std::move(source->pull));
    if (!is_worthwhile) {
      source->pull = plain_source(std::move(runs));
      return;
    }
    response.body = coded_source(coding, std::move(runs));
    response.headers.remove("Accept-Ranges");
  }
  const std::string_view name = coding == Coding::kGzip ? "gzip" : coding == Coding::kDeflate ? "deflate" : "zstd";
  response.headers.set("Content-Encoding", name);
  if (const auto etag = response.headers.get("ETag"))
    response.headers.set("ETag", coded_etag(std::string(*etag), name));
}

}  // namespace meshd::api
