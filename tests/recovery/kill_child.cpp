// kill_child FOLDER SEED: works on a data folder with four threads for ever and reports on standard output what it was
// told. It is made to be killed; it ends by itself only when something is wrong.
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "service/core/clock.h"
#include "storage/store.h"
#include "tests/recovery/store_worker.h"

namespace meshd::testing {
namespace {

using namespace storage;

constexpr int kFatalStatus = 70;
constexpr int kWorkers = 4;

void say(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(STDOUT_FILENO, text.data(), text.size()) != static_cast<ssize_t>(text.size())) ::_exit(0);
}

int run(const std::string& folder, const std::string& seed) {
  const auto files = real_file_system();
  const core::SystemClock clock;
  Store store({folder,
               {},
               [](const std::string& reason) {
                 std::fprintf(stderr, "fatal: %s\n", reason.c_str());
                 ::_exit(kFatalStatus);
               }},
              *files, clock);
  open_kill_session(store);
  std::vector<std::jthread> threads;
  for (int worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([&store, &seed, worker] {
      StoreWorker work(store, seed + "-" + std::to_string(worker), say);
      for (;;) work.step();
    });
  }
  threads.clear();
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace meshd::testing

int main(int argc, char** argv) {
  if (argc != 3) return EXIT_FAILURE;
  return meshd::testing::run(argv[1], argv[2]);
}
