// Round-robin queue of waiting jobs on two levels: principals alternate, within a principal its sessions do, and within
// a session jobs are ordered by number. So a flood of jobs delays only its own principal.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace meshd::jobs {

/// One owner at a time (JobQueue holds its lock). T is a handle that can be compared.
///
/// Example: principal p has jobs 1 and 2 in session s and job 1 in session t, principal q has one job without a
/// session. They start in the order p/s/1, q, p/t/1, p/s/2.
template <typename T>
class FairQueue {
 public:
  /// Behind jobs of the session with lower or equal numbers. An empty session is one more session, of jobs without one.
  void push(const std::string& principal, const std::string& session, int64_t number, T job) {
    Principal& place = find_or_add(principals_, principal);
    find_or_add(place.sessions, session).jobs.emplace(number, std::move(job));
    ++size_;
  }

  /// Takes a job out; false: it is not here (any more).
  bool remove(const std::string& principal, const std::string& session, int64_t number, const T& job) {
    for (auto p = principals_.begin(); p != principals_.end(); ++p) {
      if (p->name != principal) continue;
      for (auto s = p->sessions.begin(); s != p->sessions.end(); ++s) {
        if (s->name != session) continue;
        const auto [first, last] = s->jobs.equal_range(number);
        for (auto it = first; it != last; ++it) {
          if (it->second != job) continue;
          s->jobs.erase(it);
          --size_;
          if (s->jobs.empty()) p->sessions.erase(s);
          if (p->sessions.empty()) principals_.erase(p);
          return true;
        }
      }
    }
    return false;
  }

  /// Takes the next job out. `may_start(principal)`: it may have one more. `is_ready(job, is_first)`: the job may
  /// start; `is_first`: none of its session waits before it. The principal and session of the job move to the end.
  /// Nothing: no job may start.
  template <typename MayStart, typename IsReady>
  std::optional<T> take(const MayStart& may_start, const IsReady& is_ready) {
    for (auto p = principals_.begin(); p != principals_.end(); ++p) {
      if (!may_start(p->name)) continue;
      for (auto s = p->sessions.begin(); s != p->sessions.end(); ++s) {
        for (auto it = s->jobs.begin(); it != s->jobs.end(); ++it) {
          if (!is_ready(it->second, it == s->jobs.begin())) continue;
          std::optional<T> job(std::move(it->second));
          s->jobs.erase(it);
          --size_;
          move_behind(p->sessions, s, s->jobs.empty());
          move_behind(principals_, p, p->sessions.empty());
          return job;
        }
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] int64_t size() const { return size_; }

 private:
  struct Session {
    std::string name;
    std::multimap<int64_t, T> jobs;  // equal numbers in the order in which they came
  };
  struct Principal {
    std::string name;
    std::list<Session> sessions;  // the first one is served next
  };

  template <typename Place>
  static Place& find_or_add(std::list<Place>& places, const std::string& name) {
    for (Place& place : places) {
      if (place.name == name) return place;
    }
    places.push_back({name, {}});
    return places.back();
  }

  template <typename Place>
  static void move_behind(std::list<Place>& places, typename std::list<Place>::iterator place, bool is_empty) {
    if (is_empty) {
      places.erase(place);
    } else {
      places.splice(places.end(), places, place);
    }
  }

  std::list<Principal> principals_;  // the first one is served next
  int64_t size_ = 0;
};

}  // namespace meshd::jobs
