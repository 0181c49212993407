#include "tests/artifacts/artifact_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace meshd::test {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string from_base64(const std::string& text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) break;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xFF);
  }
  return out;
}

std::vector<std::filesystem::path> files_of(const std::string& folder) {
  std::vector<std::filesystem::path> out;
  const auto root = std::filesystem::path(MESHD_SOURCE_DIR) / "tests/artifacts" / folder;
  for (const auto& entry : std::filesystem::directory_iterator(root)) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<ArtifactPair> artifact_pairs() {
  std::vector<ArtifactPair> out;
  for (const auto& path : files_of("fixtures")) {
    const auto fixture = nlohmann::json::parse(contents(path));
    const std::string name = path.stem().string() + " ";
    const auto source = std::filesystem::path(MESHD_SOURCE_DIR) / fixture.at("source").get<std::string>();
    out.push_back({name + "bytecode", from_base64(fixture.at("bytecode")), contents(source)});
    std::map<std::string, std::string> texts;
    for (const auto& artifact : fixture.at("artifacts")) {
      const auto version = artifact.at("version").get<std::string>();
      texts[version] = artifact.contains("text") ? artifact.at("text").get<std::string>()
                                                 : texts.at(artifact.at("text_of").get<std::string>());
      out.push_back({name + version, from_base64(artifact.at("base64")), texts[version]});
    }
  }
  return out;
}

std::vector<ArtifactPair> vhlo_texts() {
  std::map<std::string, std::string> texts;  // of the newest version, which comes last
  for (const ArtifactPair& pair : artifact_pairs()) texts[pair.name.substr(0, pair.name.find(' '))] = pair.text;
  std::vector<ArtifactPair> out;
  for (const auto& path : files_of("vhlo"))
    out.push_back({path.stem().string(), contents(path), texts.at(path.stem())});
  return out;
}

std::vector<ArtifactPair> exports() {
  std::vector<ArtifactPair> out;
  for (const auto& path : files_of("exports")) {
    const auto fixture = nlohmann::json::parse(contents(path));
    out.push_back({path.stem().string(), from_base64(fixture.at("base64")), {}});
  }
  return out;
}

}  // namespace meshd::test
