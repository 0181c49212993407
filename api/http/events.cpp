#include "api/http/events.h"

#include <algorithm>
#include <utility>

namespace meshd::api {
namespace {

/// What a client waits before it resumes a stream that ended for want of memory.
constexpr std::string_view kRetry = "retry: 1000\n\n";

/// The lines before the data.
std::string names_of_event(std::string_view id, std::string_view event) {
  // A field ends at a line end, so names are truncated there.
  const auto first_line = [](std::string_view text) { return text.substr(0, text.find_first_of("\r\n")); };
  std::string out;
  if (!id.empty()) out.append("id: ").append(first_line(id)).append("\n");
  if (!event.empty()) out.append("event: ").append(first_line(event)).append("\n");
  return out;
}

}  // namespace

std::string format_event(std::string_view id, std::string_view event, std::string_view data) {
  std::string out = names_of_event(id, event);
  while (true) {
    const size_t end = data.find_first_of("\r\n");
    out.append("data: ").append(data.substr(0, end)).append("\n");
    if (end == std::string_view::npos) break;
    const bool pair = data[end] == '\r' && end + 1 < data.size() && data[end + 1] == '\n';
    data.remove_prefix(end + (pair ? 2 : 1));
  }
  out += '\n';
  return out;
}

std::string format_event(std::string_view id, std::string_view event, const std::function<void(std::string&)>& append) {
  std::string out = names_of_event(id, event) + "data: ";
  append(out);
  return out += "\n\n";
}

EventStream::EventStream(core::MemoryReservation memory, size_t backlog_limit_bytes)
    : backlog_limit_(backlog_limit_bytes), memory_(std::move(memory)) {}

EventStream::~EventStream() = default;

/// Makes the reservation what is there. The lock is held.
void EventStream::settle() {
  const int64_t waits = backlog_.empty() ? 0 : static_cast<int64_t>(backlog_.capacity());
  memory_.hold(std::max<int64_t>(admitted_ - sent_of_admitted_, 0) + taken_ + waits);
}

void EventStream::release_admitted() {
  admitted_ = 0;
  sent_of_admitted_ = 0;
}

bool EventStream::admit(int64_t bytes) {
  std::shared_ptr<Port> port;
  {
    std::lock_guard held(mutex_);
    if (closed_ || finishing_) return false;
    if (memory_.try_grow_beyond(bytes)) {
      admitted_ += bytes;
      return true;
    }
    backlog_ += kRetry;
    finishing_ = true;
    settle();
    port = port_;
  }
  if (port) port->flush();
  return false;
}

bool EventStream::send(std::string event) {
  std::shared_ptr<Port> port;
  bool accepted = true;
  {
    std::lock_guard held(mutex_);
    if (closed_ || finishing_) return false;
    // Text may be several times what is stored: a batch that was admitted goes as a whole.
    const bool is_beyond = admitted_ == 0 && backlog_.size() + event.size() > backlog_limit_;
    const auto size = static_cast<int64_t>(event.size());
    if (!backlog_.empty() && is_beyond) {
      // Too slow: what is queued is still sent, then the client has to reconnect with Last-Event-ID.
      finishing_ = true;
      accepted = false;
    } else if (backlog_.empty()) {
      backlog_ = std::move(event);
    } else {
      backlog_ += event;
    }
    if (accepted && admitted_ > 0) sent_of_admitted_ += size;
    if (backlog_.size() > backlog_limit_ / 2) was_over_half_ = true;
    settle();
    port = port_;
  }
  if (port) port->flush();
  return accepted;
}

bool EventStream::has_room() {
  std::lock_guard held(mutex_);
  release_admitted();
  settle();
  return !closed_ && !finishing_ && backlog_.size() <= backlog_limit_ / 2;
}

bool EventStream::closed() const {
  std::lock_guard held(mutex_);
  return closed_;
}

void EventStream::finish() {
  std::shared_ptr<Port> port;
  {
    std::lock_guard held(mutex_);
    finishing_ = true;
    port = port_;
  }
  if (port) port->flush();
}

void EventStream::set_refill(std::function<void(EventStream&)> refill) {
  std::lock_guard held(mutex_);
  refill_ = std::move(refill);
}

void EventStream::wake() {
  std::shared_ptr<Port> port;
  {
    std::lock_guard held(mutex_);
    if (closed_ || finishing_ || refill_scheduled_ || !port_ || (!refill_ && !refill_running_)) return;
    refill_scheduled_ = true;
    if (refill_running_) return;  // the current run checks the flag at its end
    port = port_;
  }
  port->schedule_refill();
}

void EventStream::set_poll(std::chrono::milliseconds interval, std::function<bool()> is_wanted) {
  poll_interval_ = interval;
  is_poll_wanted_ = std::move(is_wanted);
  next_poll_ = std::chrono::steady_clock::now() + interval;
}

void EventStream::poll(std::chrono::steady_clock::time_point now) {
  if (!is_poll_wanted_ || now < next_poll_) return;
  next_poll_ = now + poll_interval_;
  if (is_poll_wanted_()) wake();
}

void EventStream::on_close(std::function<void()> closed) {
  {
    std::lock_guard held(mutex_);
    if (!closed_) {
      on_close_ = std::move(closed);
      return;
    }
  }
  closed();
}

void EventStream::attach(std::shared_ptr<Port> port) {
  {
    std::lock_guard held(mutex_);
    port_ = port;
  }
  port->flush();
  wake();
}

std::string EventStream::take() {
  std::string out;
  bool drained = false;
  {
    std::lock_guard held(mutex_);
    out.swap(backlog_);
    taken_ = out.empty() ? 0 : static_cast<int64_t>(out.capacity());
    drained = std::exchange(was_over_half_, false);
  }
  if (drained) wake();
  return out;
}

void EventStream::taken_is_sent() {
  std::lock_guard held(mutex_);
  taken_ = 0;
  settle();
}

bool EventStream::finished() const {
  std::lock_guard held(mutex_);
  return finishing_ && backlog_.empty();
}

void EventStream::run_refill() {
  while (true) {
    std::function<void(EventStream&)> refill;
    {
      std::lock_guard held(mutex_);
      if (closed_ || finishing_ || refill_running_ || !refill_scheduled_) return;
      refill_scheduled_ = false;
      refill_running_ = true;
      refill = std::exchange(refill_, nullptr);
    }
    try {
      refill(*this);
    } catch (...) {
      // A log that cannot be read ends this stream; the client resumes with Last-Event-ID.
      finish();
    }
    std::lock_guard held(mutex_);
    refill_running_ = false;
    release_admitted();
    settle();
    if (closed_) return;
    refill_ = std::move(refill);
    if (!refill_scheduled_) return;
  }
}

void EventStream::close() {
  std::function<void()> closed;
  std::function<void(EventStream&)> refill;
  std::shared_ptr<Port> port;
  {
    std::lock_guard held(mutex_);
    if (std::exchange(closed_, true)) return;
    closed.swap(on_close_);
    if (!refill_running_) refill.swap(refill_);
    port.swap(port_);
    backlog_ = {};
    taken_ = 0;
    if (!refill_running_) release_admitted();  // else its end releases it
    settle();
  }
  if (closed) closed();
}

}  // namespace meshd::api
