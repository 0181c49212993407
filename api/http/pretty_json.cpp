#include "api/http/pretty_json.h"

#include <algorithm>
#include <vector>

namespace meshd::api {

namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/// Where the string that begins at `at` ends: the position behind its closing quote.
size_t string_end(std::string_view json, size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\') ++at;
  }
  return std::min(at + 1, json.size());
}

/// For each '[': whether the list has lists or objects in it.
std::vector<bool> deep_lists(std::string_view json) {
  std::vector<bool> deep;
  std::vector<size_t> open;  // numbers of the lists that are open; objects as SIZE_MAX
  for (size_t i = 0; i < json.size();) {
    const char c = json[i];
    if (c == '"') {
      i = string_end(json, i);
      continue;
    }
    if (c == '[' || c == '{') {
      if (!open.empty() && open.back() != SIZE_MAX) deep[open.back()] = true;
      open.push_back(c == '[' ? deep.size() : SIZE_MAX);
      if (c == '[') deep.push_back(false);
    } else if ((c == ']' || c == '}') && !open.empty()) {
      open.pop_back();
    }
    ++i;
  }
  return deep;
}

/// Counts what a std::string would get.
struct CountedText {
  size_t size = 0;

  void operator+=(char) { ++size; }
  void append(std::string_view text) { size += text.size(); }
  void append(size_t count, char) { size += count; }
};

template <typename Out>
void lay_out(std::string_view json, Out& out) {
  const std::vector<bool> deep = deep_lists(json);
  size_t list = 0;
  std::vector<bool> broken;  // for each open list or object whether its members have lines of their own
  size_t indent = 0;         // of these, those that have
  const auto line = [&] {
    out += '\n';
    out.append(indent * 2, ' ');
  };
  for (size_t i = 0; i < json.size();) {
    const char c = json[i];
    if (is_space(c)) {
      ++i;
    } else if (c == '"') {
      const size_t end = string_end(json, i);
      out.append(json.substr(i, end - i));
      i = end;
    } else if (c == '[' || c == '{') {
      const bool breaks = c == '{' || deep[list];
      if (c == '[') ++list;
      size_t next = i + 1;
      while (next < json.size() && is_space(json[next])) ++next;
      const bool empty = next < json.size() && (json[next] == ']' || json[next] == '}');
      out += c;
      broken.push_back(breaks && !empty);
      if (broken.back()) {
        ++indent;
        line();
      }
      ++i;
    } else if (c == ']' || c == '}') {
      const bool was_broken = !broken.empty() && broken.back();
      if (!broken.empty()) broken.pop_back();
      if (was_broken) {
        --indent;
        line();
      }
      out += c;
      ++i;
    } else if (c == ',') {
      out += c;
      if (!broken.empty() && broken.back()) {
        line();
      } else {
        out += ' ';
      }
      ++i;
    } else if (c == ':') {
      out.append(std::string_view(": "));
      ++i;
    } else {
      out += c;
      ++i;
    }
  }
  out += '\n';
}

}  // namespace

size_t pretty_json_size(std::string_view json) {
  CountedText out;
  lay_out(json, out);
  return out.size;
}

std::string pretty_json(std::string_view json) { return pretty_json(json, pretty_json_size(json)); }

std::string pretty_json(std::string_view json, size_t size) {
  std::string out;
  out.reserve(size);
  lay_out(json, out);
  return out;
}

}  // namespace meshd::api
