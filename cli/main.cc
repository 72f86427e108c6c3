// The program floectl.
#include <iostream>
#include <string>
#include <vector>

#include "base/program_start.h"
#include "cli/command.h"

int main(int argc, char** argv) {
  floe::SkipDeadlockDetection();
  return floe::cli::Main(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc),
                         std::cout, std::cerr);
}
