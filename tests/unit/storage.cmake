meshd_test(storage_test
  SOURCES storage_rows_test.cpp storage_catalog_test.cpp storage_blob_test.cpp storage_database_test.cpp
          storage_recovery_test.cpp storage_fault_test.cpp ../support/watched_vfs.cpp
  LINKS meshd_storage PkgConfig::sqlite3)
