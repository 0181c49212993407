#include "api/app/command_line/client_commands.h"

#include <CLI/CLI.hpp>

#include "api/app/command_line/command_table.h"
#include "api/app/serving/app.h"
#include "api/app/serving/build.h"

namespace meshd::api {
namespace {

using client::CommonOptions;

const char* const kArrays = "Arrays";
const char* const kPrograms = "Programs and runs";
const char* const kServers = "The server and its devices";

/// Adds commands of the client to the table.
class Rows {
 public:
  Rows(CLI::App& cli, ClientOptions& options, ClientCommands& out) : cli_(cli), options_(options), out_(out) {}

  /// A command, or below `above` one of its subcommands.
  CLI::App& add(const char* name, const char* about, const char* group, std::function<int()> run,
                CLI::App* above = nullptr) {
    CLI::App& command = *(above != nullptr ? above : &cli_)->add_subcommand(name, about);
    command.group(group);
    declare_server_options(command, options_);
    out_.emplace_back(&command, std::move(run));
    return command;
  }

  /// A subcommand of an id alone.
  void add_of_id(const char* name, const char* about, CLI::App& above, const char* what,
                 int (*run)(const CommonOptions&, const std::string&)) {
    CLI::App& command = add(
        name, about, "Subcommands", [&all = options_, run] { return run(all.server, all.id); }, &above);
    command.add_option("id", options_.id, what)->required();
  }

 private:
  CLI::App& cli_;
  ClientOptions& options_;
  ClientCommands& out_;
};

void add_place_options(CLI::App& command, client::PlaceOptions& place) {
  command.add_option("--mesh", place.mesh, "mesh: sizes and names of its axes such as 4x2:x,y, or an id mesh_...");
  command
      .add_option("--in", place.in, "spec of an argument such as x,y.z, in their order; - leaves one open; repeated")
      ->allow_extra_args(false);
  command.add_option("--out", place.out, "spec of a result, in their order; - leaves one open; repeated")
      ->allow_extra_args(false);
  command.add_option("--donate", place.donated, "position of an argument that is donated; repeated")
      ->allow_extra_args(false);
  command.add_option("--static", place.constants, "NAME=VALUE or POSITION=VALUE of a static argument; repeated")
      ->allow_extra_args(false);
}

void add_format_option(CLI::App& command, std::string& format) {
  command.add_option("--format", format, "what the text of the program is, where its name does not say")
      ->check(CLI::IsMember({"numpy", "stablehlo"}));
}

void declare_put(Rows& rows, ClientOptions& all) {
  client::PutOptions& put = all.put;
  CLI::App& command = rows.add("put", "store arrays of files: .npy, .npz, safetensors, raw bytes", kArrays,
                               [&all] { return client::put(all.server, all.put); });
  command.add_option("file", put.files, "files, or - for standard input")->required()->type_name(kFile);
  command.add_option("--name,-n", put.name, "name of the array; with / at its end what the names begin with");
  command.add_option("--mesh", put.mesh, "mesh: sizes and names of its axes such as 4x2:x,y, or an id mesh_...");
  command.add_option("--spec", put.spec, "how it is sharded: a field for each dimension, such as x,y.z");
  command.add_option("--spec-for", put.spec_for, "NAME=SPEC for one array of a .npz or safetensors file; repeated")
      ->allow_extra_args(false);
  command.add_option("--dtype", put.dtype, "dtype of raw bytes, or of what NumPy calls void");
  command.add_option("--dtype-for", put.dtype_for, "NAME=DTYPE for one void array of a .npz file; repeated")
      ->allow_extra_args(false);
  command.add_option("--shape", put.shape, "shape of raw bytes, such as 8,2");
  command.add_option("--slice", put.slice, "new data for a part of an array that is there, such as 0:10,::2");
  command.add_option("--durability", put.durability, "whether it survives a restart of the server")
      ->check(CLI::IsMember({"durable", "memory"}));
  command.add_option("--session", put.session, "session that owns it");
  command.add_flag("--refuse-uneven", put.refuses_uneven, "refuse shardings that do not divide the shape");
  CLI::Option* replace =
      command.add_flag("--replace", put.is_replacing, "another array in the place of one of the name");
  command.add_flag("--new", put.is_new, "refused where the name has an array")->excludes(replace);
}

void declare_get(Rows& rows, ClientOptions& all) {
  client::GetOptions& get = all.get;
  CLI::App& command = rows.add("get", "print an array, or write arrays to a file", kArrays,
                               [&all] { return client::get(all.server, all.get); });
  command.add_option("name", get.names, "names or ids of arrays; a prefix with / at its end are all below it")
      ->required();
  command.add_option("--output,-o", get.output, "file, whose end says the format; - is standard output")
      ->type_name(kFile);
  command.add_option("--format", get.format, "format of the file, where its name does not say")
      ->check(CLI::IsMember({"npy", "npz", "safetensors", "json", "raw"}));
  command.add_option("--slice", get.slice, "part of it as NumPy writes it, such as 0:10,::2");
  command.add_flag("--deflate", get.is_deflated, "compress a .npz file");
}

void declare_arrays(Rows& rows, ClientOptions& all) {
  declare_put(rows, all);
  declare_get(rows, all);
  CLI::App& list = rows.add("ls", "list arrays", kArrays, [&all] { return client::list_arrays(all.server, all.list); });
  list.add_option("prefix", all.list.prefix, "what their names begin with");
  list.add_option("--session", all.list.session, "those that this session owns");
  CLI::App& show = rows.add("show", "metadata and sharding of an array", kArrays,
                            [&all] { return client::show_array(all.server, all.name); });
  show.add_option("name", all.name, "name or id")->required();
  CLI::App& remove =
      rows.add("rm", "delete arrays", kArrays, [&all] { return client::remove_arrays(all.server, all.remove); });
  remove.add_option("name", all.remove.names, "names or ids")->required();
  remove.add_flag("--recursive,-r", all.remove.is_recursive, "all whose names begin with NAME/, in one transaction");
  remove.add_flag("--force,-f", all.remove.ignores_missing, "no mistake where there is none");
}

void declare_run(Rows& rows, ClientOptions& all) {
  client::RunOptions& run = all.run;
  CLI::App& command =
      rows.add("run", "run a program", kPrograms, [&all] { return client::run_program(all.server, all.run); });
  command
      .add_option("program", run.program,
                  "file: .py is NumPy syntax, .mlir StableHLO, else by its bytes; - or prog_...")
      ->required()
      ->type_name(kFile);
  command
      .add_option("argument", run.arguments,
                  "a file (FILE#MEMBER of a .npz), -, array:NAME, arr_..., or JSON such as 3 or [1,2]")
      ->type_name(kFile);
  command
      .add_option("--output,-o", run.output,
                  "file for the results: .npy (one), .npz, .safetensors, .json; - is standard output")
      ->type_name(kFile);
  command.add_option("--output-format", run.output_format, "format of the results, where the name does not say")
      ->check(CLI::IsMember({"npy", "npz", "safetensors", "json"}));
  add_format_option(command, run.format);
  add_place_options(command, run.place);
  command.add_flag("--store", run.is_stored, "keep the results on the server and print their ids");
  command.add_option("--name,-n", run.names, "name of a result that is stored, in their order; repeated")
      ->allow_extra_args(false);
  command.add_option("--session", run.session, "session whose order the run takes part in");
  command.add_option("--effects", run.effects, "when its log is there")->check(CLI::IsMember({"atomic", "streaming"}));
  command.add_option("--deadline", run.deadline, "seconds that it may take")->check(CLI::PositiveNumber);
  command.add_flag("--least-loaded", run.is_least_loaded, "on the devices with the least to do");
  command.add_flag("--async", run.is_asynchronous, "print the id of the job and do not wait for it");
}

void declare_programs(Rows& rows, ClientOptions& all) {
  declare_run(rows, all);
  client::ExplainOptions& explain = all.explain;
  CLI::App& command = rows.add("explain", "what a program will do: shardings, communication, memory", kPrograms,
                               [&all] { return client::explain_program(all.server, all.explain); });
  command.add_option("program", explain.program, "as for run")->required()->type_name(kFile);
  command.add_option("type", explain.arguments,
                     "type of an argument such as float32[5,2], where the program leaves it open");
  add_format_option(command, explain.format);
  add_place_options(command, explain.place);
  command.add_option("--view", explain.view, "text, a picture, or the program of one device")
      ->check(CLI::IsMember({"text", "svg", "partition"}))
      ->capture_default_str();
  CLI::App& programs =
      rows.add("programs", "list stored programs", kPrograms, [&all] { return client::list_programs(all.server); });
  CLI::App& put = rows.add(
      "put", "store a program and print its id", "Subcommands",
      [&all] { return client::store_program(all.server, all.program, all.format, all.name); }, &programs);
  put.add_option("program", all.program, "as for run")->required()->type_name(kFile);
  put.add_option("--name,-n", all.name, "its name");
  add_format_option(put, all.format);
  rows.add_of_id("show", "print the text of a program", programs, "id of a program", client::show_program);
  rows.add_of_id("rm", "delete a program", programs, "id of a program", client::remove_program);
}

void declare_sessions(Rows& rows, ClientOptions& all) {
  CLI::App& sessions =
      rows.add("sessions", "list sessions", kPrograms, [&all] { return client::list_sessions(all.server); });
  CLI::App& open = rows.add(
      "new", "open a session and print its id", "Subcommands",
      [&all] { return client::open_session(all.server, all.session); }, &sessions);
  open.add_option("--name,-n", all.session.name, "its name");
  open.add_option("--on-error", all.session.on_error, "what a failed job does to those behind it")
      ->check(CLI::IsMember({"continue", "halt"}));
  open.add_option("--effects", all.session.effects, "when the log of its jobs is there")
      ->check(CLI::IsMember({"atomic", "streaming"}));
  rows.add_of_id("show", "state of a session", sessions, "id of a session", client::show_session);
  rows.add_of_id("resume", "let a halted session go on", sessions, "id of a session", client::resume_session);
  rows.add_of_id("close", "close a session", sessions, "id of a session", client::close_session);
  CLI::App& jobs = rows.add("jobs", "list jobs, newest first", kPrograms,
                            [&all] { return client::list_jobs(all.server, all.jobs); });
  jobs.add_option("--state", all.jobs.state, "those in this state")
      ->check(CLI::IsMember({"queued", "running", "done", "failed", "cancelled"}));
  jobs.add_option("--session", all.jobs.session, "those of this session");
  jobs.add_option("--program", all.jobs.program, "those of this program");
  rows.add_of_id("show", "a job: progress, error, answer", jobs, "id of a job", client::show_job);
  rows.add_of_id("cancel", "cancel a job that waits or runs", jobs, "id of a job", client::cancel_job);
  rows.add_of_id("rm", "delete a job that is over", jobs, "id of a job", client::remove_job);
  CLI::App& watch = rows.add("watch", "follow effects and progress of a session or a job", kPrograms,
                             [&all] { return client::watch(all.server, all.watch); });
  watch.add_option("id", all.watch.id, "id of a session or a job")->required();
  watch.add_option("--after", all.watch.after, "begin behind this number of the log; 0: at its beginning")
      ->check(CLI::NonNegativeNumber);
}

void declare_servers(Rows& rows, ClientOptions& all) {
  CLI::App& meshes = rows.add("meshes", "list meshes", kServers, [&all] { return client::list_meshes(all.server); });
  CLI::App& put = rows.add(
      "put", "store a mesh and print its id", "Subcommands",
      [&all] { return client::store_mesh(all.server, all.mesh, all.is_abstract); }, &meshes);
  put.add_option("mesh", all.mesh, "sizes and names of its axes such as 4x2:x,y")->required();
  put.add_flag("--abstract", all.is_abstract, "without devices: any size");
  rows.add_of_id("rm", "delete a mesh", meshes, "id of a mesh", client::remove_mesh);
  rows.add("devices", "list devices", kServers, [&all] { return client::list_devices(all.server); });
  rows.add("info", "the server, who asks, what they have and may have", kServers,
           [&all] { return client::show_info(all.server); });
  rows.add("version", "versions of this program and of the server", kServers,
           [&all] { return client::show_versions(all.server, version()); });
}

}  // namespace

void declare_server_options(CLI::App& command, ClientOptions& options) {
  CommonOptions& server = options.server;
  command.add_option("--url", server.url, "address of the server, such as https://meshd.example.org:8443")
      ->envname("MESHD_URL")
      ->group(kServerGroup)
      ->capture_default_str();
  command.add_option("--token", server.token, "bearer token; others can see it in the list of processes")
      ->envname("MESHD_TOKEN")
      ->group(kServerGroup);
  command.add_option("--token-file", server.token_file, "file whose first line is the token")
      ->envname("MESHD_TOKEN_FILE")
      ->type_name(kFile)
      ->group(kServerGroup);
  command
      .add_option("--ca", server.ca_file,
                  "PEM file with the certificates that https:// trusts, instead of the system's")
      ->envname("MESHD_CA")
      ->type_name(kFile)
      ->group(kServerGroup);
  command.add_flag("--insecure-skip-verify", server.skips_verification, "take any certificate")->group(kServerGroup);
  command
      .add_option("--timeout", server.timeout_seconds,
                  "seconds without a byte of an answer until the command gives up; 0: never")
      ->envname("MESHD_TIMEOUT")
      ->check(CLI::NonNegativeNumber)
      ->group(kServerGroup)
      ->capture_default_str();
  command.add_flag("--json", server.is_json, "print the server's documents")->group(kServerGroup);
  command.add_flag("--quiet,-q", server.is_quiet, "no progress bars")->group(kServerGroup);
  command.add_option("--config", options.config, "configuration file in TOML; its table [client] counts")
      ->envname("MESHD_CONFIG")
      ->type_name(kFile)
      ->group(kServerGroup);
  command.add_flag("--print-config", options.prints_config, "print the client's options in effect as such a file")
      ->group(kServerGroup);
}

ClientCommands declare_client_commands(CLI::App& cli, ClientOptions& options) {
  ClientCommands out;
  Rows rows(cli, options, out);
  declare_arrays(rows, options);
  declare_programs(rows, options);
  declare_sessions(rows, options);
  declare_servers(rows, options);
  return out;
}

}  // namespace meshd::api
