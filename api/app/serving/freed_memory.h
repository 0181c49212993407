// What glibc keeps of the memory that is freed.
#pragma once

namespace meshd::api {

/// What is freed goes back to the system, but for what each of glibc's arenas keeps, which nobody counts: glibc itself
/// would keep 64 MiB in each of eight arenas a core. For the whole process; before it starts threads.
void return_freed_memory();

}  // namespace meshd::api
