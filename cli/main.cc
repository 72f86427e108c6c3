// The program floectl.
#include <iostream>
#include <string>
#include <vector>

#include "cli/command.h"

int main(int argc, char** argv) {
  return floe::cli::Main(std::vector<std::string>(argv + 1, argv + argc), std::cout, std::cerr);
}
