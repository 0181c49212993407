// `meshd tokens`: an operator's commands on tokens and their data, without a server.
#pragma once

#include <string>

namespace meshd::api {

/// Gives all data of the principal `from` (tok_..., or a token, or "-": a token that stdin has) to `name`, in one
/// transaction. No server may use the folder meanwhile. Prints what moved; the exit code.
int adopt_data(const std::string& folder, const std::string& name, const std::string& from);

/// Prints "sha256:HEX" of the token that stdin's first line has, for the tokens file; the exit code.
int hash_token();

}  // namespace meshd::api
