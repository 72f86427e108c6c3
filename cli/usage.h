// What is said of a command line that is wrong, by floectl and floed.
#pragma once

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/nearest.h"
#include "base/quoted.h"

namespace floe::cli {

// What to write instead of a flag, by its name without dashes; null: nothing is known of it.
using InsteadOfFlag = const char* (*)(const std::string& name);

// "floectl config show": the last command of the line.
inline const CLI::App& LastCommand(const CLI::App& app, std::string* name) {
  *name = app.get_name();
  const CLI::App* last = &app;
  while (!last->get_subcommands().empty()) {
    last = last->get_subcommands().front();
    absl::StrAppend(name, " ", last->get_name());
  }
  return *last;
}

// The first argument of the line that nothing takes, and the nearest name that something has.
inline std::string UnexpectedArgument(const CLI::App& app, InsteadOfFlag instead_of) {
  std::string command;
  const CLI::App& last = LastCommand(app, &command);
  const std::string argument = app.remaining(/*recurse=*/true).front();
  std::vector<std::string> names;
  if (argument.rfind('-', 0) != 0) {
    for (const CLI::App* sub : last.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(sub->get_name());
    return absl::StrCat(command, names.empty() ? " takes no argument " : " has no command ",
                        Quoted(argument), NearestHint(argument, names),
                        names.empty() ? "" : "; commands: " + QuotedList(names));
  }
  const std::string name = argument.substr(0, argument.find('='));
  for (const CLI::Option* option : last.get_options()) {
    for (const std::string& own : option->get_lnames()) names.push_back("--" + own);
    for (const std::string& own : option->get_snames()) names.push_back("-" + own);
  }
  const char* const instead =
      instead_of(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  return absl::StrCat(command, " has no flag ", Quoted(name),
                      instead != nullptr ? absl::StrCat(": ", instead) : NearestHint(name, names));
}

// Writes help, the version or what is wrong, as the exception of a parse says. True: nothing is
// wrong.
inline bool ExplainUsage(const CLI::App& app, const CLI::ParseError& e, InsteadOfFlag instead_of,
                         std::ostream& out, std::ostream& err) {
  // What is missing may only be misspelt, and what is wrong be a misspelt flag's value.
  if (e.get_exit_code() == 0 || app.remaining(/*recurse=*/true).empty())
    return app.exit(e, out, err) == 0;

  std::string command;
  LastCommand(app, &command);
  err << UnexpectedArgument(app, instead_of) << "\n" << command << " --help shows what there is.\n";
  return false;
}

}  // namespace floe::cli
