#include "divan/http/exchange.h"

#include "divan/http/exchange_state.h"

namespace divan::http {

Exchange::Exchange(std::shared_ptr<ExchangeState> state) : state_(std::move(state)) {}
Exchange::~Exchange() {
  if (observer_ && !closed()) notify_observer(500);  // as abandon() responds, if nobody has
  state_->abandon();
}

void Exchange::notify_observer(int status) {
  if (observer_ && !state_->responded()) observer_->responding(status);
}

bool Exchange::is_tls() const { return state_->is_tls; }
const Request& Exchange::request() const { return state_->request; }
std::string Exchange::take_body() { return state_->request.take_body(); }
void Exchange::set_body(std::string body) { state_->request.set_body(std::move(body)); }
bool Exchange::has_streamed_body() const { return state_->has_streamed_body(); }
void Exchange::read_body(std::size_t bytes, Callback callback) {
  state_->read_body(bytes, std::move(callback));
}
StreamedBodyPart Exchange::take_streamed_body() { return state_->take_streamed_body(); }
void Exchange::set_extra_headers(Headers headers) { state_->set_extra_headers(std::move(headers)); }
void Exchange::respond(Response response) {
  notify_observer(response.status);
  state_->respond(std::move(response));
}
void Exchange::fail(const Error& error) {
  log_failure(request(), error);
  respond(error_response(error));
}
void Exchange::start(Response head) {
  notify_observer(head.status);
  state_->start(std::move(head));
}
bool Exchange::responded() const { return state_->responded(); }
void Exchange::write(std::string bytes) { state_->write(std::move(bytes)); }
void Exchange::end() { state_->end(); }
std::size_t Exchange::unsent() const { return state_->unsent(); }
void Exchange::on_drained(Callback callback) { state_->on_drained(std::move(callback)); }
void Exchange::on_half_close(Callback callback) { state_->on_half_close(std::move(callback)); }
bool Exchange::half_closed() const { return state_->half_closed(); }
void Exchange::on_close(Callback callback) { state_->on_close(std::move(callback)); }
bool Exchange::closed() const { return state_->closed(); }
Exchange::TimerId Exchange::after(std::chrono::milliseconds delay, Callback callback) {
  return state_->after(delay, std::move(callback));
}
void Exchange::cancel(TimerId timer) { state_->cancel(timer); }
bool Exchange::claim_idle_thread() { return state_->mailbox().claim_idle_thread(); }
bool Exchange::resume(std::coroutine_handle<> coroutine) { return state_->mailbox().resume(coroutine); }
bool Exchange::call_after(std::chrono::nanoseconds delay, Callback callback) {
  return state_->mailbox().call_after(delay, std::move(callback));
}

}  // namespace divan::http
