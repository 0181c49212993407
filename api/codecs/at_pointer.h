// Gives an error of a service the place in the document that led to it. Pure; any thread.
//
// Example: arrays.find("arr_...") throws not_found without a place, since it does not know where the id stood; called
// by at_pointer("/arguments/3", ...) it throws the same with that pointer.
#pragma once

#include <string>
#include <utility>

#include "service/core/error.h"

namespace meshd::api {

/// What `work` returns. What it throws without diagnostics gets one with this pointer and the detail.
template <typename Work>
auto at_pointer(const std::string& pointer, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const core::Error& error) {
    if (!error.diagnostics().empty()) throw;
    core::Error placed(error.code(), error.detail(), {{pointer, error.detail()}});
    placed.with_internal(error.internal()).with_retry_after(error.retry_after_seconds());
    throw placed;
  }
}

}  // namespace meshd::api
