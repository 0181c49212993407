// The table of states and transitions: what holds of it whatever it is, and that the README shows it.
#include "storage/rows/job_states.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "storage/rows/rows.h"

namespace meshd::testing {
namespace {

using storage::JobState;

// From, to and cause, each state by its word; "": no row.
using Transition = std::tuple<std::string, std::string, std::string>;

std::string word(const std::optional<JobState>& state) {
  return state ? std::string(storage::to_string(*state)) : std::string();
}

// The cells of a row of a Markdown table.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (size_t begin = 1, end; (end = line.find('|', begin)) != std::string::npos; begin = end + 1) {
    const std::string cell = line.substr(begin, end - begin);
    const size_t first = cell.find_first_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
  }
  return cells;
}

// "`a`, `b`" -> a, b; an empty cell names no row.
std::vector<std::string> words_of(const std::string& cell) {
  std::vector<std::string> words;
  for (size_t begin = cell.find('`'), end; begin != std::string::npos; begin = cell.find('`', end + 1)) {
    end = cell.find('`', begin + 1);
    words.push_back(cell.substr(begin + 1, end - begin - 1));
  }
  if (words.empty()) words.emplace_back();
  return words;
}

std::set<Transition> transitions_of_readme() {
  std::ifstream file(MESHD_SOURCE_DIR "/service/jobs/README.md");
  std::set<Transition> out;
  bool is_table = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| from | to |")) is_table = true;
    if (!line.starts_with("|")) is_table = false;
    if (!is_table || line.starts_with("| from") || line.starts_with("|---")) continue;
    const std::vector<std::string> cells = cells_of(line);
    for (const std::string& from : words_of(cells.at(0))) {
      for (const std::string& to : words_of(cells.at(1))) out.emplace(from, to, cells.at(2));
    }
  }
  return out;
}

TEST(JobStates, readme_shows_the_table) {
  std::set<Transition> table;
  for (const storage::JobTransition& one : storage::kJobTransitions)
    table.emplace(word(one.from), word(one.to), std::string(one.cause));
  EXPECT_EQ(transitions_of_readme(), table);
}

TEST(JobStates, job_that_is_over_is_so_for_good_and_any_other_may_end_in_each_way) {
  constexpr JobState kAll[] = {JobState::kQueued, JobState::kRunning, JobState::kDone, JobState::kFailed,
                               JobState::kCancelled};
  for (const JobState from : kAll) {
    for (const JobState to : kAll) {
      const bool may_change = storage::may_change(from, to);
      EXPECT_FALSE(is_over(from) && may_change) << word(from) << " " << word(to);
      EXPECT_TRUE(is_over(from) || !is_over(to) || may_change) << word(from) << " " << word(to);
    }
  }
}

}  // namespace
}  // namespace meshd::testing
