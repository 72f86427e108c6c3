// Principals of the configuration, tokens of the file, and the messages of refusals.
#include "server/api/access.h"

#include <fnmatch.h>
#include <pwd.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/quoted.h"
#include "base/status.h"
#include "config/files.h"

namespace floe::server {
namespace {

constexpr char kHowToSend[] =
    "send 'authorization: Bearer TOKEN' with a token that has it (floectl token new makes one)";

Role RoleOf(MethodRole method) {
  switch (method) {
    case MethodRole::kInference:
      return Role::kInfer;
    case MethodRole::kOperators:
      return Role::kAdmin;
    case MethodRole::kHealth:
      return Role::kHealth;
    case MethodRole::kModels:
    case MethodRole::kReflection:
    case MethodRole::kOpen:
      break;
  }
  return Role::kRead;
}

// "Bearer x" as "x"; schemes are written in any case. "": another scheme.
std::string_view BearerOf(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  const absl::string_view start(authorization.data(),
                                std::min(authorization.size(), kScheme.size()));
  if (!absl::EqualsIgnoreCase(start, absl::string_view(kScheme.data(), kScheme.size()))) return {};
  authorization.remove_prefix(kScheme.size());
  while (authorization.starts_with(' ')) authorization.remove_prefix(1);
  return authorization;
}

absl::Status ExpiredError(const Principal& who) {
  return absl::UnauthenticatedError(absl::StrCat("the ", who.name, " expired at ",
                                                 UtcText(who.expires),
                                                 "; floectl token new makes another one"));
}

absl::StatusOr<uid_t> UidOf(const std::string& text) {
  uint32_t number = 0;
  if (absl::SimpleAtoi(text, &number)) return static_cast<uid_t>(number);
  passwd entry = {};
  passwd* found = nullptr;
  std::vector<char> buffer(size_t{16} << 10);
  if (getpwnam_r(text.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr)
    return absl::InvalidArgumentError(
        absl::StrCat("server.auth.principals: this machine has no user ", Quoted(text),
                     "; expected the name of a user or its number"));
  return entry.pw_uid;
}

// Kinds are part of the names, so that a common name cannot be taken for another kind.
bool HasKind(const std::string& certificate) {
  return absl::StartsWith(certificate, "DNS:") || absl::StartsWith(certificate, "URI:") ||
         absl::StartsWith(certificate, "IP:") || absl::StartsWith(certificate, "email:");
}

}  // namespace

const char* CauseOf(AccessRefusal cause) {
  static constexpr const char* kCauses[kAccessRefusals] = {"listener", "anonymous", "token",
                                                           "expired",  "role",      "model"};
  return kCauses[static_cast<size_t>(cause)];
}

absl::Status Caller::CheckToken() const {
  if (!wrong_.ok()) {
    access_->counts().Count(AccessRefusal::kToken);
    return wrong_;
  }
  if (who_ == nullptr || who_->expires == 0 || access_->now() < who_->expires)
    return absl::OkStatus();
  access_->counts().Count(AccessRefusal::kExpired);
  return ExpiredError(*who_);
}

absl::Status Caller::CheckRole(Role role) const {
  if (who_ == nullptr) return absl::OkStatus();
  FLOE_RETURN_IF_ERROR(CheckToken());
  if (who_->roles.Has(role)) return absl::OkStatus();
  const char* const name = kRoleNames[static_cast<size_t>(role)];
  if (!who_->anonymous) {
    access_->counts().Count(AccessRefusal::kRole);
    return absl::PermissionDeniedError(absl::StrCat(
        who_->name, " does not have the role ", name, ", which this call needs; it has ",
        who_->roles.is_empty() ? "none" : absl::StrJoin(who_->roles.Names(), ", "),
        "; the server's operator gives roles in the token's line, or in server.auth.principals"));
  }
  access_->counts().Count(AccessRefusal::kAnonymous);
  return absl::UnauthenticatedError(absl::StrCat(
      "this call needs the role ", name, "; ",
      access_->has_tokens()
          ? kHowToSend
          : "server.auth.principals says by which certificate or user callers have it"));
}

bool Caller::Sees(std::string_view model) const {
  if (who_ == nullptr || who_->models.empty()) return true;
  const std::string name(model);
  return std::any_of(who_->models.begin(), who_->models.end(), [&name](const std::string& glob) {
    return fnmatch(glob.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
  });
}

absl::Status Caller::CheckModel(std::string_view model) const {
  if (Sees(model)) return absl::OkStatus();
  access_->counts().Count(AccessRefusal::kModel);
  return absl::PermissionDeniedError(
      absl::StrCat(who_->name, " may not use the model ", Quoted(model),
                   "; its models: ", absl::StrJoin(who_->models, ", ")));
}

absl::Status CheckAccess(const ListenerRoles& roles, MethodRole method, bool local,
                         const Caller& caller) {
  if (absl::Status offered = CheckRole(roles, method, local); !offered.ok()) {
    if (caller.access() != nullptr) caller.access()->counts().Count(AccessRefusal::kListener);
    return offered;
  }
  return method == MethodRole::kOpen ? absl::OkStatus() : caller.CheckRole(RoleOf(method));
}

std::string TakeAuthorization(std::vector<std::pair<std::string, std::string>>* fields) {
  std::string value;
  std::erase_if(*fields, [&value](const auto& field) {
    if (field.first != "authorization") return false;
    absl::StrAppend(&value, value.empty() ? "" : ", ",
                    field.second.empty() ? "(empty)" : field.second);
    return true;
  });
  return value;
}

absl::StatusOr<std::shared_ptr<Access>> Access::Make(const AuthConfig& config, WallClock now) {
  std::shared_ptr<Access> made(new Access(config, std::move(now)));
  FLOE_RETURN_IF_ERROR(made->AddPrincipals());
  std::string text;
  if (made->has_tokens()) {
    FLOE_ASSIGN_OR_RETURN(text, ReadConfigText(config.tokens_file));
  }
  FLOE_RETURN_IF_ERROR(made->Use(std::move(text)));
  return made;
}

absl::Status Access::AddPrincipals() {
  Principal anonymous{"anonymous", config_.is_on() ? Roles() : Roles::All()};
  anonymous.anonymous = true;
  if (config_.anonymous.has_value())
    for (const std::string& name : *config_.anonymous) anonymous.roles.AddNamed(name);
  else if (config_.is_on())
    anonymous.roles.Add(Role::kHealth);
  anonymous_ = std::make_shared<const Principal>(std::move(anonymous));
  owner_ = std::make_shared<const Principal>(Principal{"the server's own user", Roles::All()});
  for (const PrincipalConfig& one : config_.principals) {
    if (!one.certificate.empty())
      by_certificate_.emplace_back(
          one.certificate, PrincipalOf(absl::StrCat("certificate ", Quoted(one.certificate)), one));
    if (one.uid.empty()) continue;
    FLOE_ASSIGN_OR_RETURN(const uid_t uid, UidOf(one.uid));
    by_uid_.emplace(uid, PrincipalOf(absl::StrCat("user ", Quoted(one.uid)), one));
  }
  return absl::OkStatus();
}

// Nobody has fewer roles than who says nothing.
std::shared_ptr<const Principal> Access::PrincipalOf(std::string name,
                                                     const PrincipalConfig& config) const {
  Principal made{std::move(name), config.roles, config.models};
  made.roles.Add(anonymous_->roles);
  return std::make_shared<const Principal>(std::move(made));
}

Caller Access::OfConnection(const ConnectionFacts& facts) const {
  for (const auto& [name, who] : by_certificate_) {
    const bool is =
        HasKind(name) ? std::find(facts.names.begin(), facts.names.end(), name) != facts.names.end()
                      : name == facts.common_name;
    if (is) return {this, who};
  }
  if (facts.uid.has_value()) {
    if (const auto found = by_uid_.find(*facts.uid); found != by_uid_.end())
      return {this, found->second};
    if (facts.to_admin_listener && (*facts.uid == 0 || *facts.uid == geteuid()))
      return {this, owner_};
  }
  return {this, anonymous_};
}

Caller Access::OfCall(const Caller& connection, std::string_view authorization) const {
  if (authorization.empty() || !has_tokens()) return connection;
  const std::string_view token = BearerOf(authorization);
  if (token.empty())
    return {this, anonymous_,
            absl::UnauthenticatedError(
                absl::StrCat("the field authorization is not 'Bearer TOKEN'; ", kHowToSend))};
  const std::shared_ptr<const Tokens> all = tokens();
  const auto found = all->find(std::string(TokenId(token)));
  if (found == all->end() || !IsTokenOf(token, found->second.line))
    return {this, anonymous_,
            absl::UnauthenticatedError(
                "the token is none of this server's; it was replaced, or is not whole (floectl "
                "token new makes one)")};
  return {this, found->second.who};
}

absl::StatusOr<Access::Tokens> Access::Parse(const std::string& text) const {
  Tokens tokens;
  FLOE_ASSIGN_OR_RETURN(std::vector<TokenLine> lines, ParseTokens(text, config_.tokens_file));
  for (TokenLine& line : lines) {
    PrincipalConfig granted;
    granted.roles = line.roles;
    granted.models = line.models;
    for (const PrincipalConfig& one : config_.principals)
      if (one.token == line.name) granted = one;
    Principal who = *PrincipalOf(absl::StrCat("token ", Quoted(line.name)), granted);
    who.expires = line.expires;
    who.token_id = line.id;
    who.token_hash = line.hash;
    std::string id = line.id;
    tokens.emplace(std::move(id),
                   Token{std::move(line), std::make_shared<const Principal>(std::move(who))});
  }
  return tokens;
}

absl::Status Access::Use(std::string text) {
  FLOE_ASSIGN_OR_RETURN(Tokens tokens, Parse(text));
  used_ = std::move(text);
  refused_.reset();
  MutexLock lock(mutex_);
  tokens_ = std::make_shared<const Tokens>(std::move(tokens));
  problem_ = absl::OkStatus();
  return absl::OkStatus();
}

absl::Status Access::Refused(const absl::Status& status) {
  absl::Status problem(status.code(), absl::StrCat(std::string(status.message()),
                                                   "; the tokens from before stay in use"));
  bool known;
  {
    MutexLock lock(mutex_);
    known = problem_ == problem;
    problem_ = problem;
  }
  if (!known) spdlog::error("auth: {}", std::string(problem.message()));
  return problem;
}

absl::Status Access::Step(bool asked) {
  if (!has_tokens()) return absl::OkStatus();
  absl::StatusOr<std::string> text = ReadConfigText(config_.tokens_file);
  if (!text.ok()) {
    // Between two files of a rename there may be none for a moment.
    const bool twice = asked || !seen_.has_value();
    seen_.reset();
    return twice ? Refused(text.status()) : absl::OkStatus();
  }
  const bool settled = asked || seen_ == *text;
  seen_ = *text;
  if (!settled || (!asked && refused_ == *text)) return absl::OkStatus();
  if (*text == used_) {
    refused_.reset();
    MutexLock lock(mutex_);
    problem_ = absl::OkStatus();
    return absl::OkStatus();
  }
  if (const absl::Status used = Use(*text); !used.ok()) {
    refused_ = *std::move(text);
    return Refused(used);
  }
  spdlog::info("auth: {} has {} tokens now", config_.tokens_file, state().tokens);
  return absl::OkStatus();
}

AccessState Access::state() const {
  AccessState state;
  const int64_t now = now_();
  MutexLock lock(mutex_);
  for (const auto& [id, token] : *tokens_)
    state.tokens += token.line.expires == 0 || token.line.expires > now ? 1 : 0;
  state.status = problem_;
  return state;
}

}  // namespace floe::server
