// The routes over real services in one process, without sockets: a request as text in, the answer as a value out. What
// the front adds (routing, body rules, problem documents) is the server's own Exchange.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/codecs/webhook_codec.h"
#include "api/routes/routes.h"
#include "api/routes/uploads.h"
#include "api/server/exchange.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {

/// An answer whose body is in memory.
struct Answer {
  int status = 0;
  api::Headers headers;
  std::string body;
  bool was_brief = false;  ///< the front would have run it on its own thread

  [[nodiscard]] std::string header(std::string_view name) const { return std::string(headers.get(name).value_or("")); }
  [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
  /// "422 invalid_mesh /devices/1 /devices/3": status, code of the problem, pointers of its errors.
  [[nodiscard]] std::string problem() const {
    std::string out = std::to_string(status);
    if (body.empty() || !header("Content-Type").starts_with("application/problem+json")) return out;
    const nlohmann::json document = json();
    out += " " + document.value("code", "");
    for (const auto& error : document.value("errors", nlohmann::json::array())) out += " " + error.value("pointer", "");
    return out;
  }
};

/// Eight devices on one thread, a data folder in memory. Requests name their principal in the field X-Principal. Any
/// thread.
class InProcess {
 public:
  /// `run_bytes`: what running runs may plan together, and arrays in memory with them three quarters; 0: any number.
  /// `vfs`: the name of SQLite's.
  explicit InProcess(int64_t json_bytes = 4LL << 20, jobs::RunnerOptions runner = {}, int64_t run_bytes = 0,
                     const std::string& vfs = {})
      : run_bytes_(run_bytes),
        store_(folder_.path(), vfs),
        runner_options_(std::move(runner)),
        context_{options(json_bytes),
                 api::SitePolicy("127.0.0.1", {{"t"}, {}, false}),
                 routes(),
                 hooks(),
                 {},
                 {},
                 false,
                 "req-",
                 1,
                 std::make_shared<api::EmptyBody>()} {}
  ~InProcess() { runner_.drain(std::chrono::seconds(0)); }
  InProcess(const InProcess&) = delete;
  InProcess& operator=(const InProcess&) = delete;

  /// `body` goes as JSON unless `fields` ("Name: value" each) name a Content-Type.
  Answer ask(const std::string& method, const std::string& target, const std::string& body = {},
             const std::vector<std::string>& fields = {}, const core::WaiterRef& waiter = nullptr) {
    std::string head = method + " " + target + " HTTP/1.1\r\nHost: t\r\n";
    bool is_typed = false;
    for (const std::string& field : fields) {
      head += field + "\r\n";
      is_typed |= field.starts_with("Content-Type");
    }
    if (!body.empty() && !is_typed) head += "Content-Type: application/json\r\n";
    if (!body.empty()) head += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    api::Exchange exchange(context_, api::parse_head(head + "\r\n", {}), {"127.0.0.1", 1});
    if (exchange.plan() != api::Exchange::Plan::kRunHere) exchange.give_body(body);
    const bool is_brief = exchange.is_brief();
    exchange.set_waiter(waiter ? waiter : std::make_shared<core::ThreadWaiter>());
    std::string answer_head;
    exchange.run([] { return true; }, answer_head);
    api::Response& response = exchange.response();
    Answer out{response.status, response.headers, {}, is_brief};
    if (const auto* text = std::get_if<std::string>(&response.body)) out.body = *text;
    if (const auto* memory = std::get_if<api::MemoryPieces>(&response.body)) {
      for (const auto piece : memory->pieces)
        out.body.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    }
    return out;
  }
  [[nodiscard]] bool is_loaded(const std::string& array) { return arrays_.is_loaded(arrays_.find(array, "ann")); }
  [[nodiscard]] int64_t queued_runs() const { return engine_.stats().queued; }
  [[nodiscard]] compile::CompileCounters compile_counters() const { return compiler_.counters(); }
  storage::Catalog& catalog() { return store_->catalog(); }
  models::ModelStore& models() { return models_; }
  /// The models as a process that starts now finds them, beside those of this one.
  class Recovered {
   public:
    explicit Recovered(InProcess& server)
        : models_(server.catalog(), server.arrays_, server.compiler_, *server.pool_, server.runner_, server.clock_,
                  server.memory_) {}
    models::ModelStore& models() { return models_; }

   private:
    models::ModelStore models_;
  };
  [[nodiscard]] core::MemoryLedger::Stats memory(core::MemoryAccount account) const {
    return memory_->stats()[static_cast<size_t>(account)];
  }
  const api::Router& router() const { return context_.router; }
  /// Blobs that are left once those are removed that no row names and nobody writes.
  size_t blob_count() {
    store_->collect_garbage();
    return store_->blobs().list().size();
  }

 private:
  static api::ServerOptions options(int64_t json_bytes) {
    api::ServerOptions out;
    out.json_bytes = json_bytes;
    return out;
  }
  static api::ServerHooks hooks() {
    api::ServerHooks out;
    out.authenticate = [](api::Request& request) {
      request.principal = std::string(request.headers.get("X-Principal").value_or("ann"));
    };
    return out;
  }
  static api::ProcessFacts facts() {
    api::ProcessFacts out;
    out.version = "0";
    out.is_recovered = [] { return true; };
    out.is_draining = [] { return false; };
    out.storage = [] {
      api::StorageSample sample;
      sample.health.writable = true;
      return sample;
    };
    return out;
  }
  api::Router routes() {
    api::Router out;
    for (auto&& rows : {api::mesh_routes(services_), api::array_routes(services_), api::array_part_routes(services_),
                        api::array_archive_routes(services_), api::zarr_routes(services_), api::call_routes(),
                        api::program_routes(services_), api::explain_routes(services_), api::gradient_routes(services_),
                        api::session_routes(services_), api::session_mesh_routes(services_),
                        api::queue_routes(services_), api::callback_routes(services_), api::job_routes(services_),
                        api::webhook_routes(services_), api::model_routes(services_, facts())}) {
      out.add(rows);
    }
    api::add_upload_routes(out, services_);
    return out;
  }

  const int64_t run_bytes_;
  TempFolder folder_{TempFolder::Where::kMemory};
  core::SystemClock clock_;
  OpenStore store_;
  core::MemoryLedgerRef memory_ = core::MemoryLedger::create(int64_t{1} << 30);
  std::shared_ptr<tensor::BufferPool> pool_ = tensor::BufferPool::create(0);
  device::Engine engine_{{.device_count = 8, .threads = 1, .memory_limit_bytes = run_bytes_}, pool_};
  compile::Compiler compiler_{engine_.threads(), 16};
  const std::unique_ptr<storage::FileSystem> files_ = storage::real_file_system();
  storage::EntryFolder compile_records_{*files_, folder_.path() + "/warmup", 0, nullptr};
  warmup::Warmup warmup_{compiler_, compile_records_, clock_};
  arrays::ArrayStore arrays_{
      *store_, pool_, clock_, {int64_t{1} << 30, run_bytes_ > 0 ? run_bytes_ / 4 * 3 : INT64_MAX}, int64_t{1} << 30};
  uploads::UploadStore uploads_{*store_, arrays_.ledger(), clock_};
  zarr::NodeStore zarr_{*store_, arrays_, clock_};
  registry::MeshRegistry meshes_{store_->catalog(), clock_};
  registry::ProgramRegistry programs_{store_->catalog(), compiler_, clock_};
  sessions::SessionStore sessions_{store_->catalog(), clock_};
  effects::EffectLog log_{store_->catalog()};
  effects::InfeedQueues infeeds_{store_->catalog(), clock_};
  effects::CallbackStore callbacks_{store_->catalog(), clock_};
  const jobs::RunnerOptions runner_options_;
  jobs::JobRunner runner_{*store_, arrays_,  compiler_,  engine_, sessions_,
                          log_,    infeeds_, callbacks_, clock_,  runner_options_};
  models::ModelStore models_{store_->catalog(), arrays_, compiler_, *pool_, runner_, clock_, memory_};
  outbound::PostPool posts_{outbound::AddressGuard()};
  webhooks::Dispatcher deliveries_{store_->catalog(),
                                   log_,
                                   posts_,
                                   clock_,
                                   memory_,
                                   {api::encode_effects_delivery, api::encode_job_delivery},
                                   [](const std::string&, const std::string&) {}};
  webhooks::WebhookStore webhooks_{store_->catalog(), clock_, posts_.guard(), [](const storage::WebhookRow&) {},
                                   [](const std::string&) {}};
  api::Services services_{clock_,   memory_,    *pool_,    compiler_,
                          warmup_,  engine_,    arrays_,   uploads_,
                          meshes_,  programs_,  sessions_, log_,
                          infeeds_, callbacks_, runner_,   jobs::IdempotencyKeys(store_->catalog()),
                          {8, 1},   models_,    webhooks_, deliveries_,
                          zarr_};
  api::FrontContext context_;
};

}  // namespace meshd::testing
