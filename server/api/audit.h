// Lines of the log about calls of operators: who called what, from where, and how it ended.
#pragma once

#include "server/api/rpc.h"

namespace floe::server {

// The same method, whose calls are logged as they end.
Method Audited(const Method& method);

// A call of the role admin that was refused by its head; some lines each second.
void LogRefusedOperator(const CallHead& head, const absl::Status& status);

}  // namespace floe::server
