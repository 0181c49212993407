// Files of arrays and forms, as clients send them.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "api/codecs/files/npy.h"
#include "api/codecs/files/safetensors.h"
#include "api/codecs/files/zip.h"

namespace meshd::testing {

/// One array of a file.
struct FileArray {
  std::string name;
  tensor::TensorType type;
  std::string bytes;
};

inline std::string npy_file(const tensor::TensorType& type, const std::string& bytes) {
  return api::write_npy_head(type) + bytes;
}

/// Its members in this order.
inline std::string npz_file(const std::vector<FileArray>& arrays) {
  api::ZipWriter zip;
  std::string out;
  for (const FileArray& array : arrays) {
    const std::string member = npy_file(array.type, array.bytes);
    const uint32_t crc = api::zip_crc(0, std::as_bytes(std::span(member)));
    out += zip.begin_stored(array.name + ".npy", static_cast<int64_t>(member.size()), crc) + member;
  }
  return out + zip.finish();
}

/// Its tensors in this order.
inline std::string safetensors_file(const std::vector<FileArray>& arrays) {
  std::vector<api::NamedTensor> head;
  std::string data;
  for (const FileArray& array : arrays) {
    head.push_back({array.name, array.type, 0});
    data += array.bytes;
  }
  return api::write_safetensors_head(head) + data;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// A part of a form that is a file.
struct File {
  std::string name;
  std::string bytes;
  std::string filename = {};
};

/// The document as the part `request`, and files.
inline std::string form_of(const nlohmann::json& document, const std::vector<File>& files,
                           const std::string& boundary = "b0undary") {
  std::string out = "--" + boundary +
                    "\r\nContent-Disposition: form-data; name=\"request\"\r\nContent-Type: application/json\r\n\r\n" +
                    document.dump();
  for (const File& file : files) {
    out += "\r\n--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + file.name + "\"";
    if (!file.filename.empty()) out += "; filename=\"" + file.filename + "\"";
    out += "\r\n\r\n" + file.bytes;
  }
  return out + "\r\n--" + boundary + "--\r\n";
}

}  // namespace meshd::testing
