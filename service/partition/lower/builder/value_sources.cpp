#include "service/partition/lower/builder/value_sources.h"

namespace meshd::partition {

const LocalOp* ValueSources::rematerialisation(LocalId id) const {
  const auto found = rematerialisations_.find(id);
  return found == rematerialisations_.end() ? nullptr : &found->second;
}

ValueSources::Key ValueSources::key(LocalId id, const ShardLayout& to) {
  Key key{id, to.dims};
  key.second.push_back({to.view});
  return key;
}

std::optional<LocalId> ValueSources::copy(LocalId id, const ShardLayout& to) const {
  const Key wanted = key(id, to);
  for (size_t depth = copies_.size(); depth-- > 0;) {
    if (const auto found = copies_[depth].find(wanted); found != copies_[depth].end()) return found->second;
  }
  return std::nullopt;
}

std::vector<LocalId> ValueSources::same_values(LocalId id) const {
  std::vector<LocalId> same{id};
  for (auto from = resharded_from_.find(id); from != resharded_from_.end(); from = resharded_from_.find(from->second))
    same.push_back(from->second);
  const size_t sources = same.size();
  for (size_t depth = copies_.size(); depth-- > 0;) {
    const std::map<Key, LocalId>& known = copies_[depth];
    for (size_t i = 0; i < sources; ++i) {
      for (auto copy = known.lower_bound({same[i], {}}); copy != known.end() && copy->first.first == same[i]; ++copy)
        same.push_back(copy->second);
    }
  }
  return same;
}

void ValueSources::rewind(size_t value_count) {
  const auto is_gone = [&](LocalId id) { return static_cast<size_t>(id) >= value_count; };
  for (std::set<LocalId>* ids : {&deferred_, &shifted_, &unruled_}) std::erase_if(*ids, is_gone);
  std::erase_if(resharded_from_, [&](const auto& entry) { return is_gone(entry.first); });
  std::erase_if(rematerialisations_, [&](const auto& entry) { return is_gone(entry.first); });
  for (std::map<Key, LocalId>& known : copies_)
    std::erase_if(known, [&](const auto& entry) { return is_gone(entry.second) || is_gone(entry.first.first); });
}

}  // namespace meshd::partition
