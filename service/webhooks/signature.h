// Signatures of deliveries, as Standard Webhooks has them (version 1, symmetric): a receiver verifies them with the
// library of its language.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "service/core/clock.h"

namespace meshd::webhooks {

/// "whsec_" and the base64 of 24 to 64 bytes: the bytes' base64. Nothing where it is none.
std::optional<std::string> key_of_secret(std::string_view secret);
/// A new key with 256 random bits, as base64.
std::string new_key();
/// The secret as its client has it: "whsec_" + key.
std::string secret_of_key(std::string_view key);

/// "v1," and the base64 of the HMAC-SHA256, under the bytes of `key`, of "ID.SECONDS.BODY".
std::string sign(std::string_view key, std::string_view id, int64_t seconds, std::string_view body);

}  // namespace meshd::webhooks
