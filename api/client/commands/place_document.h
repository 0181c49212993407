// The fields of a request that place a program: mesh, shardings, donation, constants.
#pragma once

#include "api/client/commands/commands.h"
#include "api/client/documents/placement.h"

namespace meshd::client {

/// Adds them to the body of a run (with devices) or of an explanation (without: meshes of any size).
void add_place(Json& request, const PlaceOptions& place, bool has_devices);

}  // namespace meshd::client
