#include "storage/catalog.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "service/core/error.h"
#include "storage/database/connection.h"
#include "storage/writer.h"

namespace meshd::storage {
namespace {

constexpr int64_t kMaxReaders = 16;

// Where a caller waits for its transaction. Owned by both sides, so that neither has to outlive the other.
class Outcome {
 public:
  void set(std::exception_ptr error) {
    {
      const std::lock_guard<std::mutex> held(mutex_);
      error_ = std::move(error);
      known_ = true;
    }
    changed_.notify_one();
  }
  [[nodiscard]] std::exception_ptr wait() {
    std::unique_lock<std::mutex> held(mutex_);
    changed_.wait(held, [&] { return known_; });
    return std::move(error_);
  }

 private:
  std::mutex mutex_;  ///< a leaf
  std::condition_variable changed_;
  std::exception_ptr error_;
  bool known_ = false;
};

}  // namespace

struct Catalog::Impl {
  Impl(Database& database_, DiskReserve* reserve) : database(database_), writer(database_, reserve) {}

  // Takes an idle reader, opens one, or waits for one to come back.
  std::unique_ptr<Connection> take_reader() {
    std::unique_lock<std::mutex> held(mutex);
    returned.wait(held, [&] { return !idle.empty() || open < kMaxReaders; });
    if (!idle.empty()) {
      std::unique_ptr<Connection> reader = std::move(idle.back());
      idle.pop_back();
      return reader;
    }
    ++open;
    held.unlock();
    try {
      return database.open_reader();
    } catch (...) {
      lose_reader();
      throw;
    }
  }
  void return_reader(std::unique_ptr<Connection> reader) {
    {
      const std::lock_guard<std::mutex> held(mutex);
      idle.push_back(std::move(reader));
    }
    returned.notify_one();
  }
  void lose_reader() {
    {
      const std::lock_guard<std::mutex> held(mutex);
      --open;
    }
    returned.notify_one();
  }

  Database& database;
  std::mutex mutex;  ///< a leaf
  std::condition_variable returned;
  std::vector<std::unique_ptr<Connection>> idle;  ///< guarded by mutex
  int64_t open = 0;                               ///< guarded by mutex
  Writer writer;
};

Catalog::Catalog(Database& database, DiskReserve* reserve) : impl_(std::make_unique<Impl>(database, reserve)) {}

Catalog::~Catalog() = default;

void Catalog::write(const std::function<void(Transaction&)>& f, Space space) { write_then(f, {}, space); }

void Catalog::write_then(const std::function<void(Transaction&)>& f, const std::function<void()>& then, Space space) {
  if (impl_->writer.is_own_thread()) throw core::Error("internal", "a transaction cannot wait for another one");
  const auto outcome = std::make_shared<Outcome>();
  impl_->writer.submit([&f](Transaction& transaction) { f(transaction); }, then,
                       [outcome](std::exception_ptr error) { outcome->set(std::move(error)); }, space);
  if (const std::exception_ptr error = outcome->wait()) std::rethrow_exception(error);
}

void Catalog::write_async(std::function<void(Transaction&)> f, std::function<void(std::exception_ptr)> done) {
  impl_->writer.submit(std::move(f), {}, std::move(done), Space::kTakes);
}

void Catalog::read_with(const std::function<void(Reader&)>& f) {
  std::unique_ptr<Connection> connection = impl_->take_reader();
  try {
    connection->statement("BEGIN").bind().run();
    Reader reader(*connection);
    f(reader);
    connection->statement("COMMIT").bind().run();
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    bool usable = connection->damage() == Damage::kNone;
    try {
      if (connection->in_transaction()) connection->statement("ROLLBACK").bind().run();
    } catch (const core::Error&) {
      usable = false;
    }
    if (usable) {
      impl_->return_reader(std::move(connection));
    } else {
      connection.reset();
      impl_->lose_reader();
    }
    std::rethrow_exception(error);
  }
  impl_->return_reader(std::move(connection));
}

std::vector<std::string> Catalog::take_dropped_blobs() { return impl_->writer.take_dropped_blobs(); }

bool Catalog::writable() const { return impl_->writer.writable(); }

CatalogCounters Catalog::counters() const {
  CatalogCounters counters = impl_->writer.counters();
  const std::lock_guard<std::mutex> held(impl_->mutex);
  counters.reader_connections = impl_->open;
  return counters;
}

}  // namespace meshd::storage
