#include "tests/http/compress.h"

#include <zlib.h>
#include <zstd.h>

#include <stdexcept>

namespace meshd::http_test {

namespace {

std::string zstd_with(const std::string& text, int window_log) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  if (window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  // Without the size in the frame the decoder has to go by the window alone.
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  std::string out(ZSTD_compressBound(text.size()) + 64, '\0');
  ZSTD_inBuffer in{text.data(), text.size(), 0};
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  ZSTD_compressStream2(context, &to, &in, ZSTD_e_flush);
  const size_t left = ZSTD_compressStream2(context, &to, &in, ZSTD_e_end);
  ZSTD_freeCCtx(context);
  if (left != 0) throw std::runtime_error("zstd does not compress");
  out.resize(to.pos);
  return out;
}

}  // namespace

std::string gzip_of(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd_of(const std::string& text) { return zstd_with(text, 0); }

std::string gzip_zeros(size_t size) { return gzip_of(std::string(size, '\0')); }

std::string zstd_zeros(size_t size, int window_log) { return zstd_with(std::string(size, '\0'), window_log); }

}  // namespace meshd::http_test
