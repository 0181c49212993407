// Storage's writer thread, held by a test: what is written meanwhile is one group.
#pragma once

#include <exception>
#include <future>

#include "storage/catalog.h"

namespace meshd::testing {

/// Holds the writer inside a transaction until it is destroyed.
class HeldWriter {
 public:
  explicit HeldWriter(storage::Catalog& catalog) {
    std::promise<void> entered;
    catalog.write_async(
        [&entered, gate = gate_.get_future().share()](storage::Transaction&) {
          entered.set_value();
          gate.wait();
        },
        [](const std::exception_ptr&) {});
    entered.get_future().wait();
  }
  ~HeldWriter() { gate_.set_value(); }

 private:
  std::promise<void> gate_;
};

}  // namespace meshd::testing
