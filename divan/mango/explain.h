// The response of `_explain`: the plan of a query, and why other indexes were not chosen.
#pragma once

#include <string>

#include "divan/mango/plan.h"

namespace divan::mango {

/// The response to a request for the database of this name.
std::string explain(std::string_view database, const FindRequest& request, const Plan& plan,
                    bool is_partitioned = false);

/// The keys with which a range of an index begins and ends, as JSON; empty: no bound. Those of all documents
/// are ids, others arrays of the values of the first columns; the end is a prefix with `after_all` as its
/// last element.
struct KeyRange {
  std::string start, end;
};
KeyRange key_range(const Plan& plan, std::string_view after_all);

}  // namespace divan::mango
