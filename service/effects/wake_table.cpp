#include "service/effects/wake_table.h"

#include <string>
#include <utility>
#include <vector>

namespace meshd::effects {

WakeTable::Subscription WakeTable::subscribe(const std::string& session, std::function<void()> wake) {
  std::string name = session;  // before the reader is there: what throws behind it ends the subscription
  const uint64_t number = table_->with([&](Table& table) {
    const uint64_t made = ++table.next;
    table.readers.emplace(session, std::make_pair(made, std::make_shared<std::function<void()>>(std::move(wake))));
    return made;
  });
  return {nullptr, [table = table_, name = std::move(name), number](void*) {
            table->with([&](Table& t) {
              const auto [first, last] = t.readers.equal_range(name);
              for (auto it = first; it != last; ++it) {
                if (it->second.first == number) {
                  t.readers.erase(it);
                  return;
                }
              }
            });
          }};
}

void WakeTable::notify(const std::string& session) {
  std::vector<std::shared_ptr<std::function<void()>>> wakes;
  table_->with([&](Table& table) {
    const auto [first, last] = table.readers.equal_range(session);
    for (auto it = first; it != last; ++it) wakes.push_back(it->second.second);
  });
  for (const auto& wake : wakes) (*wake)();
}

}  // namespace meshd::effects
