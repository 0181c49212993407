// A program as the command line names it: a file, standard input, or the id of a stored one; what it is written in by
// its name and its bytes.
#pragma once

#include <memory>
#include <string>

#include "api/client/text/json.h"
#include "api/client/transfer/connection.h"
#include "api/client/transfer/input.h"

namespace meshd::client {

struct ProgramSource {
  std::string id;      ///< of a stored one; then nothing else
  std::string format;  ///< "numpy" or "stablehlo" of a text
  std::string text;
  std::string artifact;  ///< bytes: MLIR bytecode, or what jax.export writes
  std::string filename;
};

/// `.py` is NumPy syntax, `.mlir` StableHLO; other files and standard input are known by their bytes. `format` wins.
ProgramSource program_source(const std::string& argument, const std::string& format);

/// Stores it, if it has no id yet: its document.
Json stored_program(Connection& connection, const ProgramSource& source, const std::string& name = {});

}  // namespace meshd::client
