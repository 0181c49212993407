// Schema migrations: number i migrates a database from version i to i + 1. A released one is never edited.
#pragma once

#include <span>

namespace meshd::storage {

/// SQL of each migration, oldest first.
std::span<const char* const> migrations();

}  // namespace meshd::storage
