#include "divan/http_client/client.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "divan/http_client/exchange.h"

namespace divan::http_client {
namespace {

// A response that is read piece by piece is not received any further while so many bytes of it wait.
constexpr std::size_t kMaxWaitingBytes = 1 << 20;
constexpr int kPollMs = 500;  // after which it is seen that the client was stopped

// A handle of the calling thread, with the connections of earlier requests. A request may be sent while the
// body of another one is being read.
class ThreadHandle {
 public:
  ThreadHandle() {
    if (idle().empty()) idle().push_back(new_handle());
    handle_ = std::move(idle().back());
    idle().pop_back();
  }
  ~ThreadHandle() { idle().push_back(std::move(handle_)); }
  ThreadHandle(const ThreadHandle&) = delete;
  ThreadHandle& operator=(const ThreadHandle&) = delete;
  CURL* get() const { return handle_.get(); }

 private:
  static std::vector<Handle>& idle() {
    static thread_local std::vector<Handle> handles;
    return handles;
  }
  Handle handle_;
};

// Sends a body piece by piece.
struct Sender {
  const std::function<std::string()>& next;
  Exchange& exchange;
  std::string piece{};
  std::size_t sent = 0;  // of the piece
  std::exception_ptr error{};

  static std::size_t send(char* to, std::size_t, std::size_t size, void* self) {
    auto& sender = *static_cast<Sender*>(self);
    try {
      if (sender.sent == sender.piece.size()) {
        sender.piece = sender.next();
        sender.sent = 0;
        sender.exchange.reset_idle_timer();
      }
    } catch (...) {
      sender.error = std::current_exception();
      return CURL_READFUNC_ABORT;
    }
    const std::size_t count = std::min(size, sender.piece.size() - sender.sent);
    std::memcpy(to, sender.piece.data() + sender.sent, count);
    sender.sent += count;
    return count;
  }
};

class ReceivedStream final : public Stream {
 public:
  ReceivedStream(const Request& request, const Options& options, const std::atomic<bool>& stopped)
      : exchange_(handle_.get(), request, options), multi_(curl_multi_init()) {
    exchange_.set_abort_conditions(stopped);
    exchange_.set(CURLOPT_WRITEFUNCTION, &ReceivedStream::receive);
    exchange_.set(CURLOPT_WRITEDATA, static_cast<void*>(this));
    if (!multi_ || curl_multi_add_handle(multi_.get(), handle_.get()) != CURLM_OK)
      throw internal_error("libcurl has no handle.");
  }
  ~ReceivedStream() override { curl_multi_remove_handle(multi_.get(), handle_.get()); }

  int status() override {
    wait();
    return exchange_.status();
  }

  std::string next() override {
    wait();
    return std::exchange(waiting_, {});
  }

 private:
  static std::size_t receive(char* bytes, std::size_t, std::size_t size, void* self) {
    auto& stream = *static_cast<ReceivedStream*>(self);
    if (stream.waiting_.size() >= kMaxWaitingBytes) {
      stream.is_paused_ = true;
      return CURL_WRITEFUNC_PAUSE;
    }
    stream.waiting_.append(bytes, size);
    return size;
  }

  // Until there are bytes of the body, or it has ended.
  void wait() {
    exchange_.reset_idle_timer();
    if (is_paused_ && waiting_.empty()) {
      is_paused_ = false;
      curl_easy_pause(handle_.get(), CURLPAUSE_CONT);
    }
    while (waiting_.empty() && !has_ended_) {
      int running = 0;
      if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) throw internal_error("libcurl has failed.");
      if (running == 0) has_ended_ = true;
      int left = 0;
      while (const auto* message = curl_multi_info_read(multi_.get(), &left)) {
        if (message->msg == CURLMSG_DONE) exchange_.check(message->data.result);
      }
      if (waiting_.empty() && !has_ended_) curl_multi_poll(multi_.get(), nullptr, 0, kPollMs, nullptr);
    }
  }

  const Handle handle_ = new_handle();
  Exchange exchange_;
  const std::unique_ptr<CURLM, MultiDeleter> multi_;
  std::string waiting_;  // received, and not returned yet
  bool is_paused_ = false;
  bool has_ended_ = false;
};

}  // namespace

Response send(const Request& request, const Options& options, const std::atomic<bool>& stopped) {
  const ThreadHandle handle;
  Exchange exchange(handle.get(), request, options);
  Receiver receiver(request, options);
  Sender sender{request.next_of_body, exchange};
  exchange.set_abort_conditions(stopped);
  if (!request.next_of_body) exchange.set_timeout(request.timeout);
  exchange.set(CURLOPT_ACCEPT_ENCODING, "gzip");
  exchange.set_receiver(receiver);
  if (request.next_of_body) {
    exchange.set(CURLOPT_UPLOAD, 1L);
    exchange.set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body_length));
    exchange.set(CURLOPT_READFUNCTION, &Sender::send);
    exchange.set(CURLOPT_READDATA, static_cast<void*>(&sender));
  } else {
    exchange.set_body(request);
  }
  const auto code = curl_easy_perform(handle.get());
  if (sender.error && !stopped) std::rethrow_exception(sender.error);
  if (receiver.is_too_large) throw ResponseTooLarge();
  if (receiver.exceeds_memory)
    throw Error(503, "busy", "The responses of other servers need too much memory.");
  exchange.check(code);
  return exchange.response(receiver);
}

std::unique_ptr<Stream> open(const Request& request, const Options& options,
                             const std::atomic<bool>& stopped) {
  return std::make_unique<ReceivedStream>(request, options, stopped);
}

}  // namespace divan::http_client
