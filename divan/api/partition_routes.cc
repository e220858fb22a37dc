// Partitions of databases (https://docs.couchdb.org/en/stable/api/partitioned-dbs.html). What is below one is
// routed like the same of the whole database.
#include <fmt/core.h>

#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/docs/partition.h"

namespace divan::api {

RouteResult partition_info(const Context& context, const CallPtr& call) {
  const std::string& name = call->path()[0];
  const std::string& partition = call->path()[2];
  call->allow("GET");
  docs::check_partition(partition);
  const auto info =
      docs::read_partition_info(context.store, context.catalog, name, partition, checkpoint_of(*call));
  return json_response(
      200, fmt::format(R"({{"db_name":{0},"sizes":{{"active":{2},"external":{2}}},"partition":{1},)"
                       R"("doc_count":{3},"doc_del_count":{4}}})",
                       json::quoted(name), json::quoted(partition), info.body_bytes, info.doc_count,
                       info.doc_del_count));
}

}  // namespace divan::api
