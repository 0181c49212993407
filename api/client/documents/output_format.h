// The format of a file of results: what --format says, else what the end of its name says.
#pragma once

#include <string>
#include <string_view>

namespace meshd::client {

/// "npy", "npz", "safetensors", "json" or "raw". For standard output ("-") without a format `usual`; raw for names that
/// end otherwise.
std::string output_format(const std::string& format, std::string_view output, const std::string& usual);

/// The media type that asks for it.
std::string_view media_type(std::string_view format);

}  // namespace meshd::client
