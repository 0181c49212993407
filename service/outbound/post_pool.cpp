#include "service/outbound/post_pool.h"

#include <curl/curl.h>
#include <unistd.h>

#include <condition_variable>
#include <list>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace meshd::outbound {
namespace {

constexpr long kAcceptedBytes = 64 * 1024;  // of an answer, which nobody reads
constexpr int kIdleMilliseconds = 60'000;
constexpr char kStops[] = "the server stops";

// libcurl wants to be initialised while no other thread runs; the first pool is built before those that use it.
void start_curl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) throw std::bad_alloc();
}

using Easy = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using Fields = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;
using Url = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

std::optional<std::string> part_of(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return std::nullopt;
  std::string out(text);
  curl_free(text);
  return out;
}

}  // namespace

std::optional<std::string> mistake_of_url(const std::string& text, const AddressGuard& guard) {
  const Url url(curl_url(), &curl_url_cleanup);
  if (!url) throw std::bad_alloc();
  if (text.find('\0') != std::string::npos ||
      curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
    return "expected a URL such as https://example.org/hook";
  const std::string scheme = part_of(url.get(), CURLUPART_SCHEME).value_or("");
  if (scheme != "https" && scheme != "http") return "expected https:// or http://, got " + scheme + "://";
  if (part_of(url.get(), CURLUPART_USER) || part_of(url.get(), CURLUPART_PASSWORD))
    return "expected no user or password in it: deliveries are signed";
  if (part_of(url.get(), CURLUPART_FRAGMENT)) return "expected no fragment (#...), which is never sent";
  std::string host = part_of(url.get(), CURLUPART_HOST).value_or("");
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const auto address = parse_address(host);
  if (address && !guard.allows(*address))
    return "the address " + host + " is not a public one; the server's operator may allow its network";
  return std::nullopt;
}

struct PostPool::Impl {
  /// A request under way.
  struct Post {
    PostRequest request;
    std::function<void(const PostOutcome&)> done;
    const AddressGuard* guard = nullptr;
    bool is_refused = false;  ///< the guard did not allow the address
    long received = 0;
    char error[CURL_ERROR_SIZE] = {};
    Fields fields{nullptr, &curl_slist_free_all};
    Easy easy{nullptr, &curl_easy_cleanup};

    static curl_socket_t open_socket(void* self, curlsocktype, curl_sockaddr* address) {
      Post& post = *static_cast<Post*>(self);
      const auto to = address_of(address->addr);
      if (!to || !post.guard->allows(*to)) {
        post.is_refused = true;
        return CURL_SOCKET_BAD;
      }
      return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    }

    static size_t receive(char*, size_t size, size_t count, void* self) {
      Post& post = *static_cast<Post*>(self);
      post.received += static_cast<long>(size * count);
      return post.received <= kAcceptedBytes ? size * count : 0;
    }

    bool prepare(const PostLimits& limits) {
      easy.reset(curl_easy_init());
      if (!easy) return false;
      for (const std::string& field : request.fields) {
        curl_slist* longer = curl_slist_append(fields.get(), field.c_str());
        if (longer == nullptr) return false;
        static_cast<void>(fields.release());
        fields.reset(longer);
      }
      bool is_set = true;
      const auto set = [&](CURLoption option, auto value) {
        is_set = curl_easy_setopt(easy.get(), option, value) == CURLE_OK && is_set;
      };
      set(CURLOPT_URL, request.url.c_str());
      set(CURLOPT_PROTOCOLS_STR, "http,https");
      set(CURLOPT_PROXY, "");
      set(CURLOPT_NOSIGNAL, 1L);
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_POSTFIELDS, request.body.data());
      set(CURLOPT_HTTPHEADER, fields.get());
      set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connecting.count()));
      set(CURLOPT_TIMEOUT_MS, static_cast<long>(limits.whole.count()));
      // A name that nobody resolves ends with its request. Without this, libcurl waits for the thread that asks for it,
      // as long as the system's resolver tries, and every other request waits as well.
      set(CURLOPT_QUICK_EXIT, 1L);
      set(CURLOPT_OPENSOCKETFUNCTION, &Post::open_socket);
      set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
      set(CURLOPT_WRITEFUNCTION, &Post::receive);
      set(CURLOPT_WRITEDATA, static_cast<void*>(this));
      set(CURLOPT_ERRORBUFFER, static_cast<char*>(error));
      set(CURLOPT_PRIVATE, static_cast<void*>(this));
      return is_set;
    }

    [[nodiscard]] PostOutcome outcome(CURLcode result) const {
      PostOutcome out;
      long status = 0;
      curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
      // A long answer has been cut off: its status counts.
      if (result == CURLE_OK || (result == CURLE_WRITE_ERROR && received > kAcceptedBytes)) {
        out.status = static_cast<int>(status);
        curl_off_t wait = 0;
        if (curl_easy_getinfo(easy.get(), CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
          out.retry_after = std::chrono::seconds(wait);
      } else if (is_refused) {
        out.error = "the address is not a public one, nor one that the server's operator has allowed";
      } else {
        out.error = error[0] != '\0' ? static_cast<const char*>(error) : curl_easy_strerror(result);
      }
      return out;
    }
  };

  Impl(AddressGuard allowed, PostLimits times) : guard(std::move(allowed)), limits(times) {
    start_curl();
    multi = curl_multi_init();
    if (multi == nullptr) throw std::bad_alloc();
    thread = std::thread([this] { run(); });
  }
  ~Impl() { curl_multi_cleanup(multi); }

  void run() {
    for (bool goes_on = true; goes_on;) {
      begin_waiting();
      int running = 0;
      curl_multi_perform(multi, &running);
      finish_done();
      {
        const std::lock_guard held(mutex);
        goes_on = !is_stopping;
        if (!waiting.empty()) continue;
      }
      if (goes_on) curl_multi_poll(multi, nullptr, 0, kIdleMilliseconds, nullptr);
    }
    PostOutcome stopped;
    stopped.error = kStops;
    while (!under_way.empty()) end(under_way.begin(), stopped);
    std::list<Post> left;
    {
      const std::lock_guard held(mutex);
      is_stopped = true;
      left.swap(waiting);
    }
    for (Post& post : left) post.done(stopped);
  }

  void begin_waiting() {
    std::list<Post> fresh;
    {
      const std::lock_guard held(mutex);
      fresh.swap(waiting);
    }
    while (!fresh.empty()) {
      under_way.splice(under_way.end(), fresh, fresh.begin());
      const auto post = std::prev(under_way.end());
      post->guard = &guard;
      if (!post->prepare(limits) || curl_multi_add_handle(multi, post->easy.get()) != CURLM_OK) {
        PostOutcome failed;
        failed.error = "there is not enough memory";
        post->easy.reset();
        end(post, failed);
      }
    }
  }

  void finish_done() {
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      char* mark = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &mark);
      const CURLcode result = message->data.result;
      for (auto post = under_way.begin(); post != under_way.end(); ++post) {
        if (static_cast<void*>(&*post) != static_cast<void*>(mark)) continue;
        end(post, post->outcome(result));
        break;
      }
    }
  }

  void end(std::list<Post>::iterator post, const PostOutcome& outcome) {
    if (post->easy) curl_multi_remove_handle(multi, post->easy.get());
    std::list<Post> ended;
    ended.splice(ended.begin(), under_way, post);
    ended.front().done(outcome);
  }

  const AddressGuard guard;
  const PostLimits limits;
  CURLM* multi = nullptr;
  std::list<Post> under_way;  ///< of the thread
  std::mutex mutex;           ///< of the members below
  std::list<Post> waiting;
  bool is_stopping = false, is_stopped = false;
  std::thread thread;
};

PostPool::PostPool(AddressGuard guard, PostLimits limits) : impl_(std::make_unique<Impl>(std::move(guard), limits)) {}

PostPool::~PostPool() { stop(); }

void PostPool::stop() {
  {
    const std::lock_guard held(impl_->mutex);
    impl_->is_stopping = true;
  }
  curl_multi_wakeup(impl_->multi);
  if (impl_->thread.joinable()) impl_->thread.join();
}

void PostPool::post(PostRequest request, std::function<void(const PostOutcome&)> done) {
  Impl::Post post;
  post.request = std::move(request);
  post.done = std::move(done);
  {
    const std::lock_guard held(impl_->mutex);
    if (!impl_->is_stopped) {
      impl_->waiting.push_back(std::move(post));
      curl_multi_wakeup(impl_->multi);
      return;
    }
  }
  PostOutcome stopped;
  stopped.error = kStops;
  post.done(stopped);
}

const AddressGuard& PostPool::guard() const { return impl_->guard; }

}  // namespace meshd::outbound
