#include "api/app/serving/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace meshd::api {

namespace {

// A handler gets nothing but the number of its signal. Written once, before the first signal can come.
std::array<int, 2> caught = {-1, -1};

sigset_t signals_of_ours() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
  return signals;
}

/// Unblocks our signals in the calling thread for its lifetime.
class Unblocked {
 public:
  Unblocked() {
    const sigset_t signals = signals_of_ours();
    ::pthread_sigmask(SIG_UNBLOCK, &signals, &before_);
  }
  ~Unblocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Unblocked(const Unblocked&) = delete;
  Unblocked& operator=(const Unblocked&) = delete;

 private:
  sigset_t before_{};
};

extern "C" void note_signal(int number) {
  const int before = errno;
  const auto byte = static_cast<unsigned char>(number);
  // A full pipe holds signals enough.
  [[maybe_unused]] const ssize_t count = ::write(caught[1], &byte, 1);
  errno = before;
}

}  // namespace

void catch_signals() {
  if (::pipe2(caught.data(), O_CLOEXEC) != 0) {
    std::perror("meshd: no pipe can be had for signals");
    std::_Exit(1);
  }
  ::fcntl(caught[1], F_SETFL, O_NONBLOCK);
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaction(number, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  // Threads that are started from here on leave them to the one that waits.
  const sigset_t signals = signals_of_ours();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

int wait_for_end(const std::function<void()>& reload) {
  const Unblocked unblocked;
  while (true) {
    // Waits in poll(): the thread sanitizer puts handlers off for as long as a thread is in read().
    pollfd look{caught[0], POLLIN, 0};
    if (::poll(&look, 1, -1) < 0 && errno == EINTR) continue;
    unsigned char number = 0;
    const ssize_t count = ::read(caught[0], &number, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count != 1) return SIGTERM;
    if (number != SIGHUP) return number;
    reload();
  }
}

}  // namespace meshd::api
