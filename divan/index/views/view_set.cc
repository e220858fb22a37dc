#include "divan/index/views/view_set.h"

#include "divan/index/views/builtin_reduce.h"

namespace divan::index::views {

bool View::has_reduce_nodes() const { return !reduce.empty() && !edge_of(reduce); }

const View* ViewSet::find(std::string_view name) const {
  const auto it = views_.find(std::string(name));
  return it == views_.end() ? nullptr : &it->second;
}

}  // namespace divan::index::views
