// KServe v2's names of dtypes, and how it lists their values.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/dtype.h"
#include "server/request/value_list.h"

namespace floe::server {

// "FP32", "BYTES", ...; "" for dtypes that KServe v2 does not know. Quantised types have the name
// of the integers that they are.
const char* KServeName(DType dtype);
// kInvalid: there is no such datatype.
DType FromKServeName(std::string_view name);

// Where InferTensorContents has values of a dtype.
struct ContentsList {
  uint32_t field = 0;  // 0: nowhere, as of float16 and bfloat16, which are sent raw
  ListKind kind = ListKind::kNone;
  const char* name = "";
};
ContentsList ContentsListOf(DType dtype);
// That of a field's number.
ContentsList ContentsListAt(uint32_t field);

}  // namespace floe::server
