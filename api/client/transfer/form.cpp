#include "api/client/transfer/form.h"

#include <fmt/core.h>

#include <filesystem>

#include "service/core/ids.h"

namespace meshd::client {
namespace {

constexpr size_t kMostOfStandardInput = size_t{1} << 30;
constexpr int kBoundaryBytes = 16;

/// A filename in a quoted string: what would end it, or the line, is left out.
std::string quotable(std::string text) {
  std::erase_if(text, [](char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' '; });
  return text;
}

}  // namespace

void Form::add_file(const std::string& name, const std::string& path) {
  auto input = std::make_unique<Input>(path);
  if (!input->is_file()) {
    add_bytes(name, "input", input->read_all(kMostOfStandardInput));
    return;
  }
  parts_.push_back({name, std::filesystem::path(path).filename().string(), std::move(input), {}});
}

void Form::add_bytes(const std::string& name, std::string filename, std::string bytes) {
  parts_.push_back({name, std::move(filename), nullptr, std::move(bytes)});
}

void Form::fill(Ask& ask, const Json& request) const {
  if (parts_.empty()) {
    ask.content_type = "application/json";
    ask.body.push_back(text_part(request.dump()));
    return;
  }
  // Random: no file has it.
  const std::string boundary = "meshd-" + core::random_hex(kBoundaryBytes);
  ask.content_type = "multipart/form-data; boundary=" + boundary;
  ask.body.push_back(text_part(fmt::format(
      "--{}\r\nContent-Disposition: form-data; name=request\r\nContent-Type: application/json\r\n\r\n{}\r\n", boundary,
      request.dump())));
  for (const Part& part : parts_) {
    constexpr auto* kHead =
        "--{}\r\nContent-Disposition: form-data; name={}; filename=\"{}\"\r\nContent-Type: "
        "application/octet-stream\r\n\r\n";
    ask.body.push_back(text_part(fmt::format(kHead, boundary, part.name, quotable(part.filename))));
    if (part.file) {
      BodyPart bytes;
      bytes.file = part.file.get();
      bytes.size = part.file->size();
      ask.body.push_back(bytes);
    } else {
      ask.body.push_back(text_part(part.bytes));
    }
    ask.body.push_back(text_part("\r\n"));
  }
  ask.body.push_back(text_part(fmt::format("--{}--\r\n", boundary)));
}

}  // namespace meshd::client
