// A process and its data directory.
#pragma once

#include <string>

#include "divan/base/rng.h"

namespace divan::app {

/// The name of the node whose data directory this is: made once and kept in DIR/node. As long as this object
/// lives, no other process can be this node, on whatever store.
class Node {
 public:
  /// Throws divan::Error 500 if the file cannot be had, or another process has it.
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
