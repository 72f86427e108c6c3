// `floectl token new`: makes a token for server.auth.tokens_file.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/status.h"
#include "cli/command.h"
#include "config/files.h"
#include "config/token_file.h"

namespace floe::cli {
namespace {

struct TokenOptions {
  std::string name = "client", expires, file;
  std::vector<std::string> roles = {"infer"}, models;
};

// "90d", "12h" or "30m" as seconds; 0: it is none.
int64_t SecondsOf(const std::string& text) {
  constexpr int64_t kMost = int64_t{100} * 365 * 86'400;
  if (text.empty()) return 0;
  const char unit = text.back();
  const int64_t each = unit == 'd' ? 86'400 : unit == 'h' ? 3'600 : unit == 'm' ? 60 : 0;
  int64_t count = 0;
  if (each == 0 || !absl::SimpleAtoi(text.substr(0, text.size() - 1), &count) || count <= 0 ||
      count > kMost / each)
    return 0;
  return count * each;
}

std::vector<std::string> SplitAtCommas(const std::vector<std::string>& texts) {
  std::vector<std::string> parts;
  for (const std::string& text : texts)
    for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty()))
      parts.emplace_back(part);
  return parts;
}

absl::StatusOr<TokenLine> LineOf(const TokenOptions& options) {
  TokenLine line;
  line.name = options.name;
  for (const std::string& role : SplitAtCommas(options.roles)) line.roles.AddNamed(role);
  line.models = SplitAtCommas(options.models);
  for (const std::string& model : line.models)
    if (!IsModelGlob(model))
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(model),
                       " (--models) is no model's name; expected one without spaces, "
                       "in which '*' stands for anything"));
  if (!options.expires.empty()) line.expires = std::time(nullptr) + SecondsOf(options.expires);
  return line;
}

// In one write, so that a server that reads meanwhile sees a whole line or none.
absl::Status Append(const std::string& path, const std::string& line) {
  std::string text = absl::StrCat(line, "\n");
  if (access(path.c_str(), F_OK) == 0) {
    FLOE_ASSIGN_OR_RETURN(const std::string before, ReadConfigText(path));
    FLOE_RETURN_IF_ERROR(ParseTokens(before, path).status());
    if (!before.empty() && before.back() != '\n') text.insert(0, 1, '\n');
  }
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  const bool written =
      fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (fd >= 0) close(fd);
  if (written) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("cannot write to ", Quoted(path), ": ", std::strerror(error)));
}

absl::Status MakeOne(const TokenOptions& options, Context& context) {
  FLOE_ASSIGN_OR_RETURN(TokenLine line, LineOf(options));
  FLOE_ASSIGN_OR_RETURN(const std::string token, MakeToken(&line));
  if (options.file.empty()) {
    context.out << "token: " << token << "\nline:  " << TokenLineText(line) << "\n";
    context.err << "give the token to the client, and add the line to server.auth.tokens_file\n";
    return absl::OkStatus();
  }
  FLOE_RETURN_IF_ERROR(Append(options.file, TokenLineText(line)));
  context.out << token << "\n";
  context.err << "the line of " << line.name << " was added to " << options.file
              << "; the token is shown this once\n";
  return absl::OkStatus();
}

void AddNew(CLI::App& app, Context& context) {
  auto options = std::make_shared<TokenOptions>();
  CLI::App* const command =
      app.add_subcommand("new", "Make a token: print it, and write its line to the file of tokens");
  command->add_option("--name", options->name, "What the server's log and messages call it")
      ->type_name("NAME")
      ->check([](const std::string& name) {
        return IsTokenName(name) ? std::string()
                                 : "expected letters, digits, '.', '_', '-' and '@', at most 64";
      })
      ->capture_default_str();
  command->add_option("--role", options->roles, "infer, read, admin or health; can be repeated")
      ->type_name("ROLE")
      ->check([](const std::string& text) {
        Roles roles;
        for (const std::string& role : SplitAtCommas({text}))
          if (!roles.AddNamed(role))
            return absl::StrCat(Quoted(role), " is none of infer, read, admin and health");
        return std::string();
      })
      ->allow_extra_args(false)
      ->capture_default_str();
  command
      ->add_option("--models", options->models,
                   "Models that it may use, with commas between them; '*' stands for anything "
                   "(default: all)")
      ->type_name("NAME,...")
      ->allow_extra_args(false);
  command
      ->add_option("--expires", options->expires,
                   "After this time, such as 90d, 12h or 30m "
                   "(default: never)")
      ->type_name("TIME")
      ->check([](const std::string& text) {
        return SecondsOf(text) > 0 ? std::string()
                                   : absl::StrCat(Quoted(text), " is no time such as 90d or 12h");
      });
  command
      ->add_option("--file", options->file,
                   "The server's file of tokens, which gets the line (default: it is printed)")
      ->type_name("FILE");
  command->footer(
      "The file holds a salted hash of the token, and not the token.\n"
      "Example:\n  floectl token new --name ci --role infer,read --expires 90d --file tokens > "
      "ci.token");
  command->callback([options, &context] {
    context.action = [options, &context] { return MakeOne(*options, context); };
  });
}

}  // namespace

void AddTokenCommand(CLI::App& app, Context& context) {
  CLI::App* const command =
      app.add_subcommand("token", "Make tokens, by which a server knows its callers");
  command->require_subcommand(1);
  AddNew(*command, context);
}

}  // namespace floe::cli
