// Every row of the function tables has a case in the suite of programs (tests/numpy/programs.py).
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "service/numpy/functions/table.h"
#include "service/numpy/syntax/parser.h"

namespace meshd::numpy {
namespace {

std::string suite() {
  std::ifstream file(MESHD_SOURCE_DIR "/tests/numpy/programs.py");
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

// How programs call a row: jnp.sum(, x.sum(, len(, P(.
std::vector<std::string> calls_of(const std::string& path) {
  const std::string name = path.substr(path.rfind('.') + 1);
  if (path == "jax.sharding.PartitionSpec") return {"P("};
  if (path == "jax.debug.log") return {" log("};
  if (path.starts_with("builtins.")) return {"\n" + name + "(", " " + name + "(", "(" + name + "(", "[" + name + "("};
  std::vector<std::string> out{path + "(", "partial(" + path, "jax." + path + "(", "jax.{function}("};
  if (path.starts_with("jax.") && suite().find("\"" + name + "\"") == std::string::npos) out.pop_back();
  if (!path.starts_with("jax.")) out.pop_back();
  if (all_globals().find_method(name) != nullptr && path.starts_with("jnp.")) out.push_back("." + name + "(");
  if (path == "jax.vmap" || path == "lax.with_sharding_constraint" || path == "functools.partial")
    out.push_back(name + "(");
  if (path == "jax.jit") out.push_back("@jax.jit");
  return out;
}

TEST(RowsTest, every_row_has_a_case) {
  const std::string text = suite();
  int rows = 0;
  for (const FunctionRow& row : all_functions()) {
    if (row.path.find("._") != std::string::npos) continue;  // other rows' own
    bool found = false;
    for (const std::string& call : calls_of(row.path)) found = found || text.find(call) != std::string::npos;
    EXPECT_TRUE(found) << row.path << " has no case in tests/numpy/programs.py";
    ++rows;
  }
  EXPECT_GT(rows, 300);
}

TEST(RowsTest, paths_are_unique_and_signatures_are_python) {
  std::set<std::string> paths;
  for (const FunctionRow& row : all_functions()) {
    EXPECT_TRUE(paths.insert(row.path).second) << row.path;
    EXPECT_NO_THROW(parse_signature(row.path, row.signature)) << row.path;
    EXPECT_NE(all_globals().find(row.path), nullptr) << row.path;
  }
}

}  // namespace
}  // namespace meshd::numpy
