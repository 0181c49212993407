#include "service/core/waits/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#include "service/core/keep_trying.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace meshd::core {

namespace {

// As of a thread: programs nest, and untouched pages cost nothing.
constexpr size_t kStackBytes = size_t{8} << 20;
constexpr size_t kKeptBytes = size_t{64} << 10;  // of a spare stack that stay in memory
constexpr size_t kSpareStacks = 64;
// That are used next, and keep all pages: giving them back costs each body its faults.
constexpr size_t kWarmStacks = 8;

}  // namespace

// The C++ runtime keeps, for each thread, the exceptions that are being handled (Itanium C++ ABI 2.2.2): the list of
// caught ones and the count of those in flight. A fiber that changes its thread takes them along.
struct ExceptionState {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

static ExceptionState exchange_exception_state(const ExceptionState& next) {
  void* const globals = abi::__cxa_get_globals();
  ExceptionState before;
  std::memcpy(&before, globals, sizeof before);
  std::memcpy(globals, &next, sizeof next);
  return before;
}

// Tells the sanitizers which stack is in use. Without them it is nothing. Always inline: the thread sanitizer counts
// calls and returns, and a call that begins on one stack must not return on another.
class StackSwitch {
 public:
  void made(const boost::context::stack_context& stack) {
    bottom_ = static_cast<std::byte*>(stack.sp) - stack.size;
    size_ = stack.size;
#if defined(__SANITIZE_THREAD__)
    fiber_ = __tsan_create_fiber(0);
#endif
  }
  void gone() {
#if defined(__SANITIZE_THREAD__)
    __tsan_destroy_fiber(fiber_);
#endif
  }
  [[gnu::always_inline]] void before_entering() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&host_fake_, bottom_, size_);
#endif
#if defined(__SANITIZE_THREAD__)
    host_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber_, 0);
#endif
  }
  [[gnu::always_inline]] void after_entering() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_, &host_bottom_, &host_size_);
#endif
  }
  [[gnu::always_inline]] void before_leaving([[maybe_unused]] bool for_good) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_, host_bottom_, host_size_);
#endif
#if defined(__SANITIZE_THREAD__)
    // A final switch: functions still return on this stack, so the thread switches itself when it is back.
    if (!for_good) __tsan_switch_to_fiber(host_, 0);
#endif
  }
  [[gnu::always_inline]] void after_leaving([[maybe_unused]] bool for_good) {
#if defined(__SANITIZE_THREAD__)
    if (for_good) __tsan_switch_to_fiber(host_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(host_fake_, nullptr, nullptr);
#endif
  }
  /// Gives back the pages below the top of an idle stack.
  void forget_pages() const { ::madvise(bottom_, size_ - kKeptBytes, MADV_DONTNEED); }

 private:
  std::byte* bottom_ = nullptr;
  size_t size_ = 0;
#if defined(__SANITIZE_ADDRESS__)
  void* fake_ = nullptr;
  void* host_fake_ = nullptr;
  const void* host_bottom_ = nullptr;
  size_t host_size_ = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void* fiber_ = nullptr;
  void* host_ = nullptr;
#endif
};

/// A stack that serves one body after the other. One thread at a time.
class Fiber {
 public:
  Fiber() {
    boost::context::protected_fixedsize_stack allocator(kStackBytes);
    const boost::context::stack_context stack = allocator.allocate();
    switch_.made(stack);
    inside_ = boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
                                    allocator, [this](boost::context::fiber&& host) { return serve(std::move(host)); });
  }
  ~Fiber() {
    ending_ = true;
    enter();
    switch_.gone();
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void set_body(std::function<void()> body) {
    body_ = std::move(body);
    is_over_ = false;
    has_pages_ = true;
  }
  [[nodiscard]] bool is_over() const { return is_over_; }
  /// Of a spare stack; once is enough until its next body.
  void forget_pages() {
    if (std::exchange(has_pages_, false)) switch_.forget_pages();
  }

  /// From a thread: runs the body until it is over or waits.
  void enter() {
    const ExceptionState host = exchange_exception_state(exceptions_);
    switch_.before_entering();
    inside_ = std::move(inside_).resume();
    switch_.after_leaving(ending_);
    exceptions_ = exchange_exception_state(host);
  }
  /// From the body: back to the thread that entered.
  void leave() {
    switch_.before_leaving(false);
    host_ = std::move(host_).resume();
    switch_.after_entering();
  }

 private:
  boost::context::fiber serve(boost::context::fiber&& host) {
    host_ = std::move(host);
    switch_.after_entering();
    while (!ending_) {
      body_();
      body_ = nullptr;
      is_over_ = true;
      leave();
    }
    switch_.before_leaving(true);
    return std::move(host_);
  }

  StackSwitch switch_;
  boost::context::fiber inside_;
  boost::context::fiber host_;
  std::function<void()> body_;
  ExceptionState exceptions_;
  bool is_over_ = true;
  bool has_pages_ = false;  ///< below the top
  bool ending_ = false;
};

FiberWaiter::FiberWaiter(Fibers& fibers, Resume resume) : fibers_(fibers), resume_(std::move(resume)) {}

FiberWaiter::~FiberWaiter() {
  if (!is_over_) fibers_.leave();  // its body was never run
}

void FiberWaiter::wait(SteadyTime until) {
  {
    const std::lock_guard held(mutex_);
    if (std::exchange(is_notified_, false)) return;
  }
  if (until <= std::chrono::steady_clock::now()) return;
  until_ = until;
  fiber_->leave();
  const std::lock_guard held(mutex_);
  is_notified_ = false;
}

bool FiberWaiter::commit() {
  const std::lock_guard held(mutex_);
  if (is_notified_) return false;
  is_suspended_ = true;
  if (until_ == SteadyTime::max()) return true;
  try {
    timer_ = fibers_.timers_.at(until_, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->go_on(false);
    });
  } catch (const std::bad_alloc&) {
    is_suspended_ = false;  // the wait returns early
    return false;
  }
  return true;
}

void FiberWaiter::notify() { go_on(true); }

void FiberWaiter::go_on(bool is_notified) {
  Timers::Id timer = 0;
  {
    const std::lock_guard held(mutex_);
    is_notified_ = is_notified_ || is_notified;
    if (!is_suspended_) return;
    is_suspended_ = false;
    timer = std::exchange(timer_, 0);
  }
  if (timer != 0) fibers_.timers_.cancel(timer);
  keep_trying([&] { resume_([self = shared_from_this()] { self->fibers_.drive(self); }); });
}

Fibers::Fibers(Timers& timers) : timers_(timers) { spare_.reserve(kSpareStacks); }

Fibers::~Fibers() { wait_until_idle(); }

std::shared_ptr<FiberWaiter> Fibers::prepare(FiberWaiter::Resume resume) {
  auto waiter = std::make_shared<FiberWaiter>(*this, std::move(resume));
  const std::lock_guard held(mutex_);
  ++live_;
  return waiter;
}

void Fibers::leave() {
  const std::lock_guard held(mutex_);
  if (--live_ == 0) idle_.notify_all();
}

void Fibers::run(const std::shared_ptr<FiberWaiter>& waiter, std::function<void()> body) {
  {
    const std::lock_guard held(mutex_);
    if (!spare_.empty()) {
      waiter->fiber_ = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  if (waiter->fiber_ == nullptr) waiter->fiber_ = std::make_unique<Fiber>();
  waiter->fiber_->set_body(std::move(body));
  drive(waiter);
}

void Fibers::drive(const std::shared_ptr<FiberWaiter>& waiter) {
  // The fiber may be over on another thread before commit() has returned here: nothing is touched behind it.
  Fiber& fiber = *waiter->fiber_;
  while (true) {
    fiber.enter();
    if (fiber.is_over()) break;
    if (waiter->commit()) return;
  }
  waiter->is_over_ = true;
  recycle(std::move(waiter->fiber_));
}

void Fibers::recycle(std::unique_ptr<Fiber> fiber) {
  {
    const std::lock_guard held(mutex_);
    if (spare_.size() < kSpareStacks) {
      spare_.push_back(std::move(fiber));
      // The last ones in are the first ones out: those below them may stay unused for long.
      if (spare_.size() > kWarmStacks) spare_[spare_.size() - kWarmStacks - 1]->forget_pages();
    }
  }
  fiber.reset();
  leave();
}

int64_t Fibers::live() const {
  const std::lock_guard held(mutex_);
  return live_;
}

void Fibers::wait_until_idle() {
  std::unique_lock held(mutex_);
  idle_.wait(held, [this] { return live_ == 0; });
}

}  // namespace meshd::core
