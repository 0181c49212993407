// What ends a command of the client, and the exit codes that scripts test. One table: the manual page is made of it.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

namespace meshd::client {

/// Exit codes of the client's commands; beyond 1 those of sysexits.h.
enum ExitCode : int {
  kDone = 0,
  kRefused = 1,
  kInterrupted = 2,
  kUsage = 64,
  kNoInput = 66,
  kUnavailable = 69,
  kOutputFailed = 74,
  kNoPermission = 77,
};

struct ExitCodeRow {
  int code;
  std::string_view when;
};
/// Of all commands; `serve` ends with 3 besides, where its storage has failed.
inline constexpr std::array<ExitCodeRow, 9> kExitCodes = {{
    {kDone, "done"},
    {kRefused, "the server refused the request, the job failed, or the check found something"},
    {kInterrupted, "the job that was watched was cancelled"},
    {3, "serve: a failure of the data folder left a write unknown"},
    {kUsage, "the command line, the environment or the configuration file is wrong"},
    {kNoInput, "an input file cannot be read, or is of a kind that nothing here reads"},
    {kUnavailable, "no answer: the server cannot be reached, ends, is overloaded or has failed"},
    {kOutputFailed, "the output cannot be written"},
    {kNoPermission, "the server asks for a token, or the token may not do this"},
}};

/// Thrown by what a command does; caught by run_client_command alone. `what()` is text for a terminal, of any number of
/// lines. `document` is the server's problem document, empty where there is none.
class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& text, std::string document = {})
      : std::runtime_error(text), code_(code), document_(std::move(document)) {}
  [[nodiscard]] ExitCode code() const { return code_; }
  [[nodiscard]] const std::string& document() const { return document_; }

 private:
  ExitCode code_;
  std::string document_;
};

}  // namespace meshd::client
