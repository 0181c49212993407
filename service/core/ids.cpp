#include "service/core/ids.h"

#include <openssl/evp.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <sstream>

#include "service/core/error.h"

namespace meshd::core {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

void ask_kernel(std::span<unsigned char> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = getrandom(bytes.data() + done, bytes.size() - done, 0);
    if (got > 0) done += static_cast<size_t>(got);
  }
}

// The kernel is asked for the bytes of 32 ids at once. Each byte is used once, and forgotten here.
void fill_random(std::span<unsigned char> bytes) {
  static thread_local std::array<unsigned char, 256> waiting;
  static thread_local size_t left = 0;
  if (bytes.size() > waiting.size()) return ask_kernel(bytes);
  if (left < bytes.size()) {
    ask_kernel(waiting);
    left = waiting.size();
  }
  const std::span<unsigned char> taken(waiting.data() + left - bytes.size(), bytes.size());
  std::copy(taken.begin(), taken.end(), bytes.begin());
  std::fill(taken.begin(), taken.end(), static_cast<unsigned char>(0));
  left -= bytes.size();
}

std::string to_hex(std::span<const unsigned char> bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const unsigned char byte : bytes) {
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

// Milliseconds and a 12-bit counter behind them, never going backwards: what makes ids of one process sortable.
uint64_t next_tick(const Clock& clock) {
  static constinit std::atomic<uint64_t> last{0};
  const auto millis = static_cast<uint64_t>(clock.wall().time_since_epoch().count() / 1000);
  uint64_t before = last.load(std::memory_order_relaxed);
  uint64_t tick = 0;
  do {
    tick = std::max(millis << 12, before + 1);
  } while (!last.compare_exchange_weak(before, tick, std::memory_order_relaxed));
  return tick;
}

}  // namespace

std::string new_id(std::string_view prefix, const Clock& clock) {
  const uint64_t tick = next_tick(clock);
  const uint64_t millis = tick >> 12;
  std::array<unsigned char, 16> bytes{};
  fill_random(std::span(bytes).subspan(8));
  for (int i = 0; i < 6; ++i) bytes[static_cast<size_t>(i)] = static_cast<unsigned char>(millis >> (40 - 8 * i));
  bytes[6] = static_cast<unsigned char>(0x70 | ((tick >> 8) & 0x0F));
  bytes[7] = static_cast<unsigned char>(tick & 0xFF);
  bytes[8] = static_cast<unsigned char>(0x80 | (bytes[8] & 0x3F));
  const std::string hex = to_hex(bytes);
  std::string out(prefix);
  out += '_';
  out.append(hex, 0, 8).append("-").append(hex, 8, 4).append("-").append(hex, 12, 4);
  out.append("-").append(hex, 16, 4).append("-").append(hex, 20, 12);
  return out;
}

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  unsigned int length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    throw std::bad_alloc();  // with valid arguments it has no other reason
  }
  return to_hex(digest);
}

std::string digest_id(std::string_view prefix, std::string_view content) {
  return std::string(prefix) + "_" + sha256_hex(content).substr(0, 32);
}

std::string join_ids(const std::vector<std::string>& ids) {
  std::string out;
  for (const std::string& id : ids) out += (out.empty() ? "" : " ") + id;
  return out;
}

std::vector<std::string> split_ids(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

std::string random_hex(int count) {
  std::string bytes(static_cast<size_t>(count), '\0');
  fill_random({reinterpret_cast<unsigned char*>(bytes.data()), bytes.size()});
  return to_hex({reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()});
}

bool looks_like_id(std::string_view id, std::string_view prefix) {
  if (id.size() <= prefix.size() + 1 || id.size() > prefix.size() + 1 + 36) return false;
  if (!id.starts_with(prefix) || id[prefix.size()] != '_') return false;
  for (const char c : id.substr(prefix.size() + 1)) {
    if (kHex.find(c) == std::string_view::npos && c != '-') return false;
  }
  return true;
}

}  // namespace meshd::core
