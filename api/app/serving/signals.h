// The server's signals as bytes of a pipe (self-pipe). They are not blocked and awaited with sigwait: libraries start
// threads before main() (OpenBLAS does), in which a blocked signal is not blocked, and its default ends the process.
#pragma once

#include <functional>

namespace meshd::api {

/// From now on SIGTERM, SIGINT and SIGHUP are kept for wait_for_end(), whichever thread gets them, and SIGPIPE is
/// ignored. Once, before anything else. Ends the process where no pipe can be had.
void catch_signals();

/// Waits for a signal that ends the server and returns it; calls `reload` at each SIGHUP. One thread at a time.
int wait_for_end(const std::function<void()>& reload);

}  // namespace meshd::api
