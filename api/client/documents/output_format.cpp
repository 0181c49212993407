#include "api/client/documents/output_format.h"

#include <array>
#include <utility>

namespace meshd::client {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kFormats = {
    {{"npy", "application/x-npy"},
     {"npz", "application/zip"},
     {"safetensors", "application/x-safetensors"},
     {"json", "application/json"},
     {"raw", "application/octet-stream"}}};

}  // namespace

std::string output_format(const std::string& format, std::string_view output, const std::string& usual) {
  if (!format.empty()) return format;
  if (output == "-") return usual;
  for (const auto& [name, media] : kFormats) {
    if (output.size() > name.size() && output.ends_with(name) && output[output.size() - name.size() - 1] == '.') {
      return std::string(name);
    }
  }
  return "raw";
}

std::string_view media_type(std::string_view format) {
  for (const auto& [name, media] : kFormats) {
    if (name == format) return media;
  }
  return "application/json";
}

}  // namespace meshd::client
