// Backups of the whole store, and restores of databases from such a backup.
#include <fmt/core.h>

#include "divan/api/routes.h"
#include "divan/backup/backup.h"
#include "divan/backup/restores.h"
#include "divan/base/json.h"
#include "divan/base/log.h"
#include "divan/base/notifier.h"

namespace divan::api {
namespace {

// Unsent bytes above which the backup waits for the client.
constexpr std::size_t kMaxUnsent = 1 << 20;

// Writes to a socket and blocks while its client does not read.
class SocketWriter {
 public:
  SocketWriter(http::Exchange& exchange, const Clock& clock) : exchange_(exchange), clock_(clock) {
    exchange_.on_close([notifier = notifier_] { notifier->notify(); });
  }

  // Returns false if the client has disconnected.
  bool write(std::string_view bytes) {
    exchange_.write(std::string(bytes));
    while (exchange_.unsent() > kMaxUnsent && !exchange_.closed()) {
      exchange_.on_drained([notifier = notifier_] { notifier->notify(); });
      notifier_->wait_until(clock_, MonotonicTime::max());
    }
    return !exchange_.closed();
  }

 private:
  http::Exchange& exchange_;
  const Clock& clock_;
  const std::shared_ptr<Notifier> notifier_ = std::make_shared<Notifier>();
};

// Runs on a thread of its own from beginning to end, since a backup waits for its client, which would block
// the requests' threads.
void send_backup(const Context& context, http::Exchange& exchange, const http::Response& head) {
  exchange.start(head);
  SocketWriter writer(exchange, context.clock);
  try {
    const bool complete = backup::write_backup(
        context.store, {context.version, context.server_uuid, context.clock.wall_ms()},
        [&](std::string_view bytes) { return writer.write(bytes) && !context.stopping; });
    if (complete) exchange.end();
  } catch (const std::exception& error) { log::error("A backup was aborted: {}", error.what()); }
  // If the backup is incomplete, this releases the exchange, which closes the connection, so that the client
  // detects it.
  exchange.on_close([] {});
}

// {"version": 1, "databases": [{"name": "shop", "number": 1, "created": 1700000000000}]}
RouteResult begin_restore(const Context& context, Call& call) {
  std::vector<backup::RestoredDatabase> databases;
  kv::Version version = 0;
  try {
    const auto body = json::parse_object(call.json_body());
    version = body.at("version").as_int64();
    for (const auto& entry : body.at("databases").as_array()) {
      const auto& database = entry.as_object();
      databases.push_back({std::string(database.at("name").as_string()), database.at("number").as_int64(),
                           database.at("created").as_int64()});
    }
  } catch (const Error&) { throw; } catch (const std::exception&) {
    throw bad_request("The request to begin a restore must have the backup's `version` and `databases`.");
  }
  const std::string id = context.restores.begin(databases, version);
  return json_response(201, fmt::format(R"({{"ok":true,"id":{}}})", json::quoted(id)));
}

// {"rows": 5}
RouteResult finish_restore(const Context& context, Call& call, const std::string& id) {
  const std::string body = call.json_body();
  const auto rows = json::member(body, "rows");
  const auto number = rows ? json::int_value(*rows) : std::nullopt;
  if (!number) throw bad_request("The request to finish a restore must have the number of its `rows`.");
  context.restores.finish(id, *number);
  return ok_response(201);
}

}  // namespace

// A restore consists of several requests, none of them large, so that servers, proxies and clients handle it
// like any other, and a piece whose response was lost can be sent again.
RouteResult restore(const Context& context, const CallPtr& call) {
  const auto& path = call->path();
  if (path.size() == 1) {
    call->allow("POST");
    return begin_restore(context, *call);
  }
  const std::string& id = path[1];
  if (path.size() == 2) {
    call->allow("POST,DELETE");
    if (call->method() == "POST") return finish_restore(context, *call, id);
    context.restores.abandon(id);
    return ok_response();
  }
  if (path.size() > 3) throw not_found("missing");
  call->allow("PUT");
  const auto number = json::int_value(path[2]);
  if (!number || *number < 0)
    throw bad_request(fmt::format("The number of a piece is `{}`; expected an integer, 0 or more.", path[2]));
  context.restores.add(id, *number, call->body());
  return ok_response();
}

RouteResult backup(const Context& context, const CallPtr& call) {
  call->allow("GET");
  http::Response head;
  head.headers = {{"Content-Type", "application/octet-stream"}, {"Cache-Control", "no-store"}};
  if (call->exchange()->request().method() == "HEAD") return head;
  const bool taken = context.backups.submit([context, exchange = call->exchange(), head = std::move(head)] {
    send_backup(context, *exchange, head);
  });
  if (!taken) throw Error(503, "too_many_backups", "Too many backups are in progress; try again later.");
  return std::nullopt;
}

}  // namespace divan::api
