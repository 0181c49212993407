// What a caught exception is to whoever waits for the work that threw it.
#pragma once

#include <exception>
#include <string>

#include "service/core/error.h"

namespace meshd::core {

/// The exception itself where it is an Error; memory_exceeded with the text `no_memory` for std::bad_alloc; else
/// internal with the text `failed`, and what the exception says for the log. Throws std::bad_alloc. Any thread.
Error error_of(const std::exception_ptr& exception, std::string no_memory, std::string failed);

}  // namespace meshd::core
