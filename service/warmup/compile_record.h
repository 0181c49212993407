// What a lowering was made of, as bytes: the program's text, how it was derived from that, and the request. It has
// nothing that a compilation makes, so that any build can compile it again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "service/compile/pipeline.h"

namespace meshd::warmup {

struct CompileRecord {
  std::string format;
  std::string text;
  compile::Derivation derivation;
  compile::LowerRequest request;
};

/// The record of a lowering of `parsed`.
CompileRecord record_of(const compile::ParsedProgram& parsed, const compile::LowerRequest& request);
/// About the bytes of its record: those of texts and values.
int64_t record_bytes(const compile::ParsedProgram& parsed);
/// The record as bytes. Pure.
std::string encode(CompileRecord record);
/// The record of these bytes. Throws internal where they are not encode()'s, or of another version of it.
CompileRecord decode_record(std::string_view bytes);
/// Compiles it. Throws what Compiler throws.
compile::LoweredRef compile_record(compile::Compiler& compiler, const CompileRecord& record);

}  // namespace meshd::warmup
