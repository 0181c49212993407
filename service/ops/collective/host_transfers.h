// Endpoints of infeed, outfeed, send and recv: a queue of the client, or another device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "service/ops/op_def.h"

namespace meshd::ops {

enum class TransferKind : uint8_t {
  kIn,    ///< dequeues what the client fed: infeed, recv from the host
  kOut,   ///< gives to the client: outfeed, send to the host
  kSend,  ///< gives to a recv of the same program
  kRecv,  ///< takes from a send of the same program
};

/// One instance. Example: `"stablehlo.send"(%x, %token) <{channel_handle = #stablehlo.channel_handle<handle = 3, type =
/// 2>, is_host_transfer = true}>` -> kOut, queue "channel_3", channel 3, value_operands {0}.
struct TransferInfo {
  TransferKind way = TransferKind::kIn;
  std::string queue;                ///< kIn, kOut: infeed_config or outfeed_config as written, or channel_N
  int64_t channel = 0;              ///< send, recv
  bool has_pairs = false;           ///< source_target_pairs has rows
  std::vector<int> value_operands;  ///< operands that are no tokens
  std::vector<int> value_results;   ///< results that are no tokens
};

/// True for the four names, with their dialect ("stablehlo.infeed").
bool is_host_transfer(std::string_view name);
/// `name` is one of them. Throws invalid_program for attributes of the wrong kind.
TransferInfo host_transfer_of(std::string_view name, const OpView& view);

/// The op that a pair of send and recv is: source_target_pairs are its pairs.
const OpDef& pair_op();

}  // namespace meshd::ops
