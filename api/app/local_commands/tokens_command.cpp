#include "api/app/local_commands/tokens_command.h"

#include <fmt/core.h>

#include <array>
#include <cstdio>
#include <iostream>
#include <string_view>

#include "api/app/access/token_file.h"
#include "api/app/local_commands/data_command.h"
#include "service/core/error.h"
#include "service/core/ids.h"
#include "storage/store.h"

namespace meshd::api {
namespace {

using storage::Counted;

struct Kind {
  Counted what;
  const char* name;
};
constexpr std::array<Kind, 5> kKinds = {{{Counted::kArrays, "arrays"},
                                         {Counted::kSessions, "sessions"},
                                         {Counted::kJobs, "jobs"},
                                         {Counted::kPrograms, "programs"},
                                         {Counted::kMeshes, "meshes"}}};

std::string read_token() {
  std::string line;
  std::getline(std::cin, line);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  if (line.empty() || line.find_first_of(" \t") != std::string::npos)
    throw core::Error("invalid_request", "expected a token on the first line of stdin, without blanks");
  return line;
}

bool is_nameless(std::string_view text) {
  return text.starts_with("tok_") && text.size() == nameless_principal("").size() && core::looks_like_id(text, "tok");
}

}  // namespace

int adopt_data(const std::string& folder, const std::string& name, const std::string& from) {
  return run_command("tokens", [&](storage::FileSystem& files) {
    check_principal_name(name);
    const std::string token = from == "-" ? read_token() : from;
    const std::string old = is_nameless(token) ? token : nameless_principal(token);
    const std::unique_ptr<storage::Store> store = open_data(folder, files);
    std::string had;
    int64_t all = 0;
    store->catalog().write([&](storage::Transaction& transaction) {
      for (const Kind& kind : kKinds) {
        const int64_t count = transaction.count_of(kind.what, old);
        all += count;
        had += fmt::format("{}{} {}", had.empty() ? "" : ", ", count, kind.name);
      }
      transaction.give_to(old, name);
    });
    if (all == 0) throw core::Error("not_found", fmt::format("{} has no data in the folder '{}'", old, folder));
    std::printf("%s has what was %s's: %s\n", name.c_str(), old.c_str(), had.c_str());
    return 0;
  });
}

int hash_token() {
  return run_command("tokens", [](storage::FileSystem&) {
    std::printf("sha256:%s\n", core::sha256_hex(read_token()).c_str());
    return 0;
  });
}

}  // namespace meshd::api
