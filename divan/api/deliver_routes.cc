// What the nodes deliver: /_deliver. docs/delivery.md
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/deliver/deliverer.h"

namespace divan::api {

RouteResult deliveries(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const auto loads =
      context.store.run([&](kv::Transaction& tx) { return context.registry.loads(tx, deliver::kRole); });
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("nodes").begin_array();
  for (const auto& [node, load] : loads) {
    writer.begin_object().key("node").string(node);
    json::for_each_member(load, [&](std::string_view name, std::string_view value) {
      writer.key(json::unescape(name)).raw(value);
      return true;
    });
    writer.end_object();
  }
  writer.end_array().end_object();
  return json_response(200, std::move(out));
}

}  // namespace divan::api
