#include "api/client/commands/run_client.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "api/client/text/failure.h"
#include "api/client/text/json.h"
#include "api/client/text/terminal_text.h"
#include "api/client/transfer/connection.h"

namespace meshd::client {

int run_client(const CommonOptions& server, const char* name, const std::function<int()>& command) {
  // A connection or a pipe that its reader has closed is an error of a write.
  std::signal(SIGPIPE, SIG_IGN);
  warn_of_open_token_file(server, name);
  try {
    return command();
  } catch (const Failure& failure) {
    if (server.is_json) {
      const Json own = {{"detail", failure.what()}, {"exit_code", static_cast<int>(failure.code())}};
      std::fprintf(stderr, "%s\n", failure.document().empty() ? own.dump().c_str() : failure.document().c_str());
    } else {
      std::fprintf(stderr, "meshd %s: %s\n", name, text_for(STDERR_FILENO, failure.what()).c_str());
    }
    return failure.code();
  } catch (const Json::exception& error) {
    std::fprintf(stderr, "meshd %s: the answer is not one of meshd's: %s\n", name, error.what());
    return kUnavailable;
  }
}

}  // namespace meshd::client
