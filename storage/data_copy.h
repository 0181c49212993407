// Copies of a data folder: a backup, or what is restored of one. Where a copy is being made, the new folder has the
// file `incomplete` from before the first byte until everything is durable. A copy that fails is removed; one that a
// crash cut off keeps that file, and nobody takes it for data: it has an empty or a whole database, and some of the
// blobs.
#pragma once

#include <string>
#include <vector>

#include "storage/blobs/blob_store.h"
#include "storage/database/connection.h"
#include "storage/file_system.h"

namespace meshd::storage {

/// Rows as they are now and the blobs that they name, as a new folder. No blob may be removed meanwhile. Throws as
/// Store::backup_to.
void copy_data(FileSystem& files, Connection& rows, const BlobStore& blobs, const std::string& folder, BlobCopy how);

/// Throws storage_failed where the folder holds a copy that was cut off, or that is being made.
void require_whole(const std::string& folder);

/// Makes private: the data folder, the database's files, and the folders of blobs. Blobs themselves are created
/// private. Returns the paths with another owner.
std::vector<std::string> make_data_private(FileSystem& files, const std::string& folder);

}  // namespace meshd::storage
