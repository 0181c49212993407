// The event stream of a session.
#pragma once

#include "api/http/router.h"
#include "api/routes/services.h"

namespace meshd::api {

/// The session's log from the request's cursor on, then what is committed from now on, and every second the progress
/// of jobs that have run for a second, without an id: only the log is resumed.
Response stream_events(Request& request, Services& services);

}  // namespace meshd::api
