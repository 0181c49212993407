// What the client's commands do, over HTTP. Each takes the options of its row
// (api/app/command_line/client_commands.cpp), prints to standard output and returns the exit code; what ends it early
// is thrown as a Failure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/client/transfer/connection.h"

namespace meshd::client {

struct PutOptions {
  std::vector<std::string> files;
  std::string name;  ///< that of the array; with a slash at its end what names begin with
  std::string mesh, spec;
  std::vector<std::string> spec_for, dtype_for;
  std::string dtype, shape;  ///< of raw bytes
  std::string slice, durability, session;
  bool refuses_uneven = false;
  bool is_replacing = false;  ///< another array in the place of the one that has the name
  bool is_new = false;        ///< refused where the name has an array
};
int put(const CommonOptions& server, const PutOptions& options);

struct GetOptions {
  std::vector<std::string> names;  ///< names, ids, or one prefix with a slash at its end
  std::string output;              ///< a file, "-", or nothing: values as text
  std::string format, slice;
  bool is_deflated = false;
};
int get(const CommonOptions& server, const GetOptions& options);

struct ListOptions {
  std::string prefix, session;
};
int list_arrays(const CommonOptions& server, const ListOptions& options);
int show_array(const CommonOptions& server, const std::string& name);

struct RemoveOptions {
  std::vector<std::string> names;
  bool is_recursive = false;
  bool ignores_missing = false;
};
int remove_arrays(const CommonOptions& server, const RemoveOptions& options);

/// Where a program would run, as run and explain take it.
struct PlaceOptions {
  std::string mesh;
  std::vector<std::string> in, out;  ///< specs
  std::vector<int64_t> donated;
  std::vector<std::string> constants;  ///< NAME=JSON
};

struct RunOptions {
  std::string program, format;
  std::vector<std::string> arguments;
  PlaceOptions place;
  std::string output, output_format, session, effects;
  std::vector<std::string> names;  ///< of results that are stored
  bool is_stored = false;
  bool is_asynchronous = false;
  bool is_least_loaded = false;
  double deadline = 0;
};
int run_program(const CommonOptions& server, const RunOptions& options);

struct ExplainOptions {
  std::string program, format;
  std::vector<std::string> arguments;  ///< types
  PlaceOptions place;
  std::string view = "text";  ///< text, svg, or partition: the program of one device
};
int explain_program(const CommonOptions& server, const ExplainOptions& options);

int list_programs(const CommonOptions& server);
int store_program(const CommonOptions& server, const std::string& program, const std::string& format,
                  const std::string& name);
/// The text of it.
int show_program(const CommonOptions& server, const std::string& id);
int remove_program(const CommonOptions& server, const std::string& id);

int list_meshes(const CommonOptions& server);
int store_mesh(const CommonOptions& server, const std::string& mesh, bool is_abstract);
int remove_mesh(const CommonOptions& server, const std::string& id);

int list_sessions(const CommonOptions& server);
struct SessionOptions {
  std::string name, on_error, effects;
};
int open_session(const CommonOptions& server, const SessionOptions& options);
int show_session(const CommonOptions& server, const std::string& id);
int resume_session(const CommonOptions& server, const std::string& id);
int close_session(const CommonOptions& server, const std::string& id);

struct JobFilter {
  std::string state, session, program;
};
int list_jobs(const CommonOptions& server, const JobFilter& filter);
int show_job(const CommonOptions& server, const std::string& id);
/// Refused where it is over.
int cancel_job(const CommonOptions& server, const std::string& id);
/// Of one that is over, with its answer.
int remove_job(const CommonOptions& server, const std::string& id);

struct WatchOptions {
  std::string id;      ///< of a session or a job
  int64_t after = -1;  ///< sequence number; -1: a job's own effects, a session's from the end of its log on
};
/// Of a session until it is closed, of a job until it is over: kDone, kRefused where it failed, kInterrupted where it
/// was cancelled.
int watch(const CommonOptions& server, const WatchOptions& options);

int list_devices(const CommonOptions& server);
/// The server's version, and who asks with what limits.
int show_info(const CommonOptions& server);
/// The client's version, and that of the server where one answers.
int show_versions(const CommonOptions& server, const std::string& own);
int make_backup(const CommonOptions& server, const std::string& name);

}  // namespace meshd::client
