// `divan verify`.
#pragma once

#include <string>

namespace divan::app {

struct VerifyOptions {
  std::string data_dir;
  std::string store;  // a shared store, instead of a data directory
  bool json = false;
  bool quiet = false;
};

/// Reads all of a data directory or shared store that no server uses, and prints the findings. Returns the
/// exit status: 0 if there are none. Throws divan::Error or kv::Error if the store cannot be opened.
int verify(const VerifyOptions& options);

}  // namespace divan::app
