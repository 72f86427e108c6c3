// For the tests beside it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"

namespace floe {

// The mistakes that a status names, one string each; "(none)" for OK.
inline std::vector<std::string> MistakesOf(const absl::Status& status) {
  if (status.ok()) return {"(none)"};
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return absl::StrSplit(std::string(status.message()), '\n');
}

}  // namespace floe
