#include "service/kernels/tile/code_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace meshd::kernels {

std::unique_ptr<const CodeMemory> CodeMemory::make(std::span<const std::byte> code) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = (code.size() + page - 1) / page * page;
  if (bytes == 0) return nullptr;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  std::memcpy(memory, code.data(), code.size());
  if (mprotect(memory, bytes, PROT_READ | PROT_EXEC) != 0) {
    munmap(memory, bytes);
    return nullptr;
  }
  return std::unique_ptr<const CodeMemory>(new CodeMemory(static_cast<std::byte*>(memory), bytes));
}

CodeMemory::~CodeMemory() { munmap(memory_, bytes_); }

}  // namespace meshd::kernels
