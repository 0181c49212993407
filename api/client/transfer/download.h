// Writes the body of a response to a file or to standard output as it comes, and goes on where a lost connection cut it
// off, if the server still has the same data (Range with If-Range).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/client/text/progress_bar.h"
#include "api/client/transfer/connection.h"

namespace meshd::client {

/// A file that appears under its name only when it is whole, or standard output ("-"). One thread.
class Output {
 public:
  /// Throws Failure kOutputFailed.
  explicit Output(std::string path);
  /// What was not ended is removed.
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(std::string_view bytes);
  /// The file gets its name.
  void end();
  [[nodiscard]] int64_t size() const { return size_; }

 private:
  [[noreturn]] void fail() const;

  std::string path_;
  std::string partial_;  ///< name until end(); empty: what is written to is no regular file
  int descriptor_ = -1;
  int64_t size_ = 0;
};

/// The head of the response, whose body is in the file.
Answer download(Connection& connection, Ask ask, Output& output, ProgressBar& bar);

/// Standard output, for texts. Throws Failure kOutputFailed; a reader that has gone (`| head`) ends the process with 0.
void print(std::string_view text);

}  // namespace meshd::client
