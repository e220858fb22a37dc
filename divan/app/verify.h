// `divan verify`.
#pragma once

#include <string>

namespace divan::app {

struct VerifyOptions {
  std::string data_dir;
  std::string store;  // a shared one, instead
  bool json = false;
  bool quiet = false;
};

/// Reads a data directory or shared store that no server uses from end to end, and says what is wrong;
/// answers the exit status: 0 if nothing is. Throws Error if there is nothing to be read.
int verify(const VerifyOptions& options);

}  // namespace divan::app
