// meshd backup, restore and fsck: maintenance of a data folder that no server uses. They print what they did to stdout
// and mistakes to stderr, and return the exit code of the process.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "storage/store.h"

namespace meshd::api {

/// Runs the command `name` on the real file system; what it throws is a line on stderr and exit code 1.
int run_command(const char* name, const std::function<int(storage::FileSystem&)>& command);

/// Opens an existing data folder as a server would, which recovers it; a failure that leaves a write unknown ends the
/// process with 3. Throws not_found where there is no data, storage_failed where a server uses the folder.
std::unique_ptr<storage::Store> open_data(const std::string& folder, storage::FileSystem& files);

/// Copies the data to the new folder `target`; blobs are hard links where the file system can.
int back_up_data(const std::string& folder, const std::string& target);
/// Makes the data folder `folder` of a backup, after checking it.
int restore_data(const std::string& backup, const std::string& folder);
/// Reads everything and compares checksums; changes nothing. 1 when something is wrong.
int check_data(const std::string& folder);

}  // namespace meshd::api
