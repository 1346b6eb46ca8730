// Runs another program and takes what it prints; no shell in between.
#pragma once

#include <string>
#include <vector>

namespace tilewright {

struct ProcessResult {
  int status = 0;      // exit status, or 128 + the signal that ended it
  std::string output;  // standard output
  std::string errors;  // standard error
};

// Throws MachineError where the program cannot be started.
ProcessResult run_process(const std::vector<std::string>& arguments);

}  // namespace tilewright
