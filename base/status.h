// Macros over absl::Status, floe's one error vocabulary (its codes map 1:1 to gRPC's).
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

// Returns from the enclosing function when `expr` (an absl::Status) is not OK.
#define FLOE_RETURN_IF_ERROR(expr)                                                   \
  do {                                                                               \
    if (absl::Status floe_status_ = (expr); !floe_status_.ok()) return floe_status_; \
  } while (false)

// FLOE_ASSIGN_OR_RETURN(T x, expr): moves the value of a StatusOr into `x`, or returns its status.
#define FLOE_ASSIGN_OR_RETURN(lhs, expr) \
  FLOE_ASSIGN_OR_RETURN_IMPL_(FLOE_CONCAT_(floe_or_, __LINE__), lhs, expr)
#define FLOE_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                \
  if (!tmp.ok()) return std::move(tmp).status();    \
  lhs = *std::move(tmp)
#define FLOE_CONCAT_(a, b) FLOE_CONCAT_IMPL_(a, b)
#define FLOE_CONCAT_IMPL_(a, b) a##b

namespace floe {

// The same code and payloads with `prefix` put before the message; OK stays OK.
inline absl::Status Annotate(const absl::Status& status, const std::string& prefix) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), prefix + ": " + std::string(status.message()));
  status.ForEachPayload([&annotated](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace floe
