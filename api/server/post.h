// Posts to the reactor that must not be lost.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "service/core/keep_trying.h"

namespace meshd::api {

/// Posts `handler` where nobody else would go on with what it is for, as the end of a request's work: while there is no
/// memory for it, the thread tries again. Any thread.
template <typename Handler>
void post_surely(boost::asio::io_context& io, const Handler& handler) {
  core::keep_trying([&] { boost::asio::post(io, handler); });
}

}  // namespace meshd::api
