#include "server/api/roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/api/fakes_for_test.h"

namespace floe::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr ListenerRoles kNothing = {OfferedTo::kNobody, OfferedTo::kNobody, OfferedTo::kNobody};

struct RoleCase {
  MethodRole method;
  OfferedTo ListenerRoles::*role;
};
constexpr RoleCase kRoleCases[] = {{MethodRole::kInference, &ListenerRoles::infer},
                                   {MethodRole::kModels, &ListenerRoles::read},
                                   {MethodRole::kHealth, &ListenerRoles::read},
                                   {MethodRole::kReflection, &ListenerRoles::read},
                                   {MethodRole::kOperators, &ListenerRoles::admin}};

TEST(Roles, AMethodIsOfferedByItsRoleAlone) {
  for (const RoleCase& one : kRoleCases) {
    ListenerRoles only = kNothing;
    only.*one.role = OfferedTo::kAll;
    ListenerRoles others = {OfferedTo::kAll, OfferedTo::kAll, OfferedTo::kAll};
    others.*one.role = OfferedTo::kNobody;
    for (const bool local : {false, true}) {
      EXPECT_TRUE(CheckRole(only, one.method, local).ok());
      EXPECT_TRUE(absl::IsPermissionDenied(CheckRole(others, one.method, local)));
    }
    only.*one.role = OfferedTo::kLocal;
    EXPECT_TRUE(CheckRole(only, one.method, /*local=*/true).ok());
    EXPECT_TRUE(absl::IsPermissionDenied(CheckRole(only, one.method, /*local=*/false)));
  }
}

TEST(Roles, WithoutMoreOnlyOperatorsMustBeOfThisMachine) {
  for (const RoleCase& one : kRoleCases) {
    EXPECT_TRUE(CheckRole({}, one.method, /*local=*/true).ok());
    EXPECT_EQ(CheckRole({}, one.method, /*local=*/false).ok(),
              one.method != MethodRole::kOperators);
  }
}

TEST(Roles, RefusalsNameTheWayOut) {
  EXPECT_THAT(CheckRole({}, MethodRole::kOperators, false).ToString(),
              AllOf(HasSubstr("own machine only"), HasSubstr("--enable_config_rpcs=true")));
  EXPECT_THAT(CheckRole(kNothing, MethodRole::kOperators, true).ToString(),
              HasSubstr("enable_config_rpcs: local"));
  EXPECT_THAT(CheckRole(kNothing, MethodRole::kInference, true).ToString(),
              AllOf(HasSubstr("inference is not offered"), HasSubstr("another listener")));
}

// Whoever opens a method passes the check, and one that is refused does not hear of the call.
TEST(Roles, AreCheckedWhereMethodsAreOpened) {
  int calls = 0;
  const Method method = UnaryMethod(
      MethodRole::kModels,
      [&calls](const CallHead&, const Message&, const std::shared_ptr<Responder>& responder) {
        ++calls;
        responder->Finish(absl::OkStatus());
      });
  const auto call = [&method](const ListenerRoles& roles) {
    CallHead head;
    head.roles = roles;
    const auto responder = std::make_shared<FakeResponder>();
    Invoke(method, head, Message{}, responder);
    return responder->status.code();
  };
  EXPECT_EQ(call({}), absl::StatusCode::kOk);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(call(kNothing), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace floe::server
