// One infeed entry: what a client feeds to an infeed (or to a recv from the host): a value for each result, for all
// devices together or for each of them apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "service/device/effect_sink.h"
#include "service/tensor/dense_value.h"

namespace meshd::effects {

/// The values for one device.
struct InfeedPart {
  int64_t device = 0;
  std::vector<tensor::DenseValue> values;
};

/// Either `values` or `parts`.
struct InfeedEntry {
  std::string queue;
  int64_t number = 0;                      ///< place in its queue, 1..; among those of a request where it came with one
  std::vector<tensor::DenseValue> values;  ///< by result, unsharded
  std::vector<InfeedPart> parts;
  int64_t partitions = 0;     ///< devices of the fed arrays; 0: any number
  bool from_session = false;  ///< taken from the session's queue, not from the request
};

/// The entry as its row keeps it, without queue and number.
std::string infeed_to_text(const InfeedEntry& entry);
InfeedEntry infeed_from_text(std::string queue, int64_t number, std::string_view text);

/// The results of an infeed: bytes for each. Parts are assembled by the results' shardings in the text; without one
/// every part is unsharded, and all are equal. Inside a manual computation each device gets its own part. Example:
/// result 8x2 with mhlo.sharding {devices=[2,1]<=[2]}: parts 4x2 for two devices -> 8x2. Throws invalid_argument naming
/// queue and entry: another number of parts or devices than the run has, a device twice or not in the run, other types,
/// replicas that differ.
std::vector<std::vector<std::byte>> results_of(const InfeedEntry& entry, const device::EffectCall& call);

}  // namespace meshd::effects
