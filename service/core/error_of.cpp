#include "service/core/error_of.h"

#include <new>
#include <utility>

namespace meshd::core {

Error error_of(const std::exception_ptr& exception, std::string no_memory, std::string failed) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {"memory_exceeded", std::move(no_memory)};
  } catch (const std::exception& other) {
    return Error("internal", std::move(failed)).with_internal(other.what());
  }
}

}  // namespace meshd::core
