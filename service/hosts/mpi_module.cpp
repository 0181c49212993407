#include "service/hosts/mpi_module.h"

#include <fmt/core.h>

#include <dlfcn.h>

#include <array>
#include <cstdlib>

#include "service/core/error.h"

namespace meshd::hosts {
namespace {

constexpr const char* kModule = "libmeshd_mpi.so";

}  // namespace

std::string launcher_of(const Environment& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* value = environment(name);
    if (value == nullptr) continue;
    return std::atoi(value) > 1 ? std::string(name) + " is " + value : "";
  }
  // PMIx tells the rank; Slurm tells how many there are.
  const char* tasks = environment("SLURM_NTASKS");
  if (environment("PMIX_RANK") != nullptr && tasks != nullptr && std::atoi(tasks) > 1)
    return std::string("SLURM_NTASKS is ") + tasks + " and PMIX_RANK is set";
  return "";
}

std::unique_ptr<Network> open_mpi(const std::string& why, const std::string& folder) {
  std::string tried;
  for (const std::string& path : {folder + "/" + kModule, folder + "/../lib/meshd/" + kModule, std::string(kModule)}) {
    // Global: MPI's own components find its symbols there. It is never closed.
    void* const module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (module == nullptr) {
      tried += std::string(tried.empty() ? "" : "; ") + ::dlerror();
      continue;
    }
    using Open = Network* (*)(char*, size_t);
    const auto open = reinterpret_cast<Open>(::dlsym(module, "meshd_open_network"));
    if (open == nullptr) throw core::Error("internal", path + " is not meshd's MPI module");
    std::array<char, 256> problem{};
    std::unique_ptr<Network> network(open(problem.data(), problem.size()));
    if (network == nullptr) throw core::Error("internal", std::string("MPI does not start: ") + problem.data());
    return network;
  }
  throw core::Error("internal", fmt::format("{}, but {} cannot be loaded: install openmpi-bin and libopenmpi-dev and "
                                            "build meshd again, or start it with --hosts off ({})",
                                            why, kModule, tried));
}

}  // namespace meshd::hosts
