// Databases as servers of earlier schemas left them.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

#include "storage/database/migrations.h"

namespace meshd::testing {

inline void execute(const std::string& path, const std::string& sql) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
  sqlite3_close(handle);
}

/// The database of a server of schema `version`, with these rows.
inline void make_database(const std::string& path, size_t version, const std::string& rows) {
  for (size_t done = 0; done < version; ++done) execute(path, storage::migrations()[done]);
  execute(path, rows + "PRAGMA application_id = " + std::to_string(0x6d736864) +
                    "; PRAGMA user_version = " + std::to_string(version));
}

}  // namespace meshd::testing
