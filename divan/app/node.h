// The identity of a process, stored in its data directory.
#pragma once

#include <string>

#include "divan/base/rng.h"

namespace divan::app {

/// The name of the node that owns a data directory: generated once, and stored in DIR/node. As long as this
/// object exists, no other process can be this node, with any store.
class Node {
 public:
  /// Throws divan::Error 500 if the file cannot be opened, or another process has locked it.
  Node(const std::string& data_dir, Rng& rng);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const std::string& name() const { return name_; }

 private:
  int file_ = -1;
  std::string name_;
};

}  // namespace divan::app
