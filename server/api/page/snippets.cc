#include "server/api/page/snippets.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/quoted.h"
#include "server/api/rest/json_text.h"

namespace floe::server {
namespace {

// A body of more is made by a program instead of being written out.
constexpr size_t kMostInline = 240;
constexpr int64_t kMostListed = 64;  // elements

// One row, and 1 where a dim is not known.
std::vector<int64_t> ExampleDims(const SymShape& shape) {
  std::vector<int64_t> dims;
  dims.reserve(static_cast<size_t>(shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis)
    dims.push_back(shape.dim(axis).concrete() ? shape.dim(axis).size() : 1);
  return dims;
}

struct ElementTexts {
  std::string json, python;
};
ElementTexts ZeroOf(DType dtype) {
  if (dtype == DType::kBool) return {"false", "False"};
  if (dtype == DType::kString) return {"\"text\"", "\"text\""};
  if (IsFloating(dtype)) return {"0.0", "0.0"};
  return {"0", "0"};
}

// "[[0.0] * 784]"
std::string PythonValue(const SignatureTensor& input) {
  std::string text = ZeroOf(input.type.dtype).python;
  const std::vector<int64_t> dims = ExampleDims(input.type.shape);
  for (size_t axis = dims.size(); axis-- > 0;)
    text = dims[axis] == 1 ? absl::StrCat("[", text, "]")
                           : absl::StrCat("[", text, "] * ", dims[axis]);
  return text;
}

// "[[0.0,0.0]]"; "" where it is long.
std::string SampleJson(const SignatureTensor& input) {
  std::string text = ZeroOf(input.type.dtype).json;
  const std::vector<int64_t> dims = ExampleDims(input.type.shape);
  int64_t elements = 1;
  for (const int64_t dim : dims)
    if (dim > kMostListed || (elements *= std::max<int64_t>(dim, 1)) > kMostListed) return "";
  for (size_t axis = dims.size(); axis-- > 0;) {
    std::string list = "[";
    for (int64_t i = 0; i < dims[axis]; ++i) absl::StrAppend(&list, i == 0 ? "" : ",", text);
    text = list + "]";
  }
  return text;
}

// "List(List(\"0.0\", 784), 1)"
std::string CppValue(const SignatureTensor& input) {
  std::string text =
      absl::StrCat("std::string(\"", absl::CEscape(ZeroOf(input.type.dtype).json), "\")");
  const std::vector<int64_t> dims = ExampleDims(input.type.shape);
  for (size_t axis = dims.size(); axis-- > 0;)
    text = absl::StrCat("List(", text, ", ", dims[axis], ")");
  return text;
}

std::string NameAsJson(const std::string& name) {
  constexpr size_t kMostNameBytes = 1024;
  std::string json;
  AppendJsonString(Printable(name, kMostNameBytes), &json);
  return json;
}

// In single quotes of a shell.
std::string ShellQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string CurlOf(const std::string& json, const std::string& python, const std::string& url) {
  if (!json.empty() && json.size() <= kMostInline)
    return absl::StrCat("curl -sf -d ", ShellQuoted(json), " ", ShellQuoted(url), "\n");
  return absl::StrCat("python3 -c ",
                      ShellQuoted(absl::StrCat("import json; print(json.dumps(", python, "))")),
                      " |\n  curl -sf -d @- ", ShellQuoted(url), "\n");
}

std::string CppOf(const std::string& body, const std::string& url) {
  return absl::StrCat(R"(// g++ -std=c++17 call.cc -lcurl -o call && ./call
#include <curl/curl.h>

#include <string>

std::string List(const std::string& of, int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i) text += (i > 0 ? "," : "") + of;
  return text + "]";
}

int main() {
  const std::string body = )",
                      body, R"(;
  CURL* const curl = curl_easy_init();
  curl_easy_setopt(curl, CURLOPT_URL, ")",
                      absl::CEscape(url), R"(");
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
  const CURLcode code = curl_easy_perform(curl);  // prints the answer
  curl_easy_cleanup(curl);
  return code == CURLE_OK ? 0 : 1;
}
)");
}

}  // namespace

Snippets SnippetsFor(const SignatureDef& signature, const std::string& url) {
  std::string json, python, cpp;
  bool short_enough = true;
  for (const SignatureTensor& input : signature.inputs) {
    if (input.optional) continue;
    if (!HasJson(input.type.dtype)) {
      const std::string why =
          absl::StrCat("Input ", Quoted(input.key), " is ", DTypeName(input.type.dtype),
                       ", which JSON has not; call gRPC.\n");
      return {why, why, why};
    }
    const std::string key = NameAsJson(input.key), value = SampleJson(input);
    short_enough &= !value.empty();
    absl::StrAppend(&json, json.empty() ? "" : ", ", key, ": ", value);
    absl::StrAppend(&cpp, "\n      \"", cpp.empty() ? "" : ", ", absl::CEscape(key), ": \" + ",
                    CppValue(input), " +");
    absl::StrAppend(&python, python.empty() ? "" : ", ", key, ": ", PythonValue(input));
  }
  const std::string which =
      signature.name == "serving_default"
          ? ""
          : absl::StrCat("\"signature_name\": ", NameAsJson(signature.name), ", ");
  json = absl::StrCat("{", which, "\"inputs\": {", json, "}}");
  python = absl::StrCat("{", which, "\"inputs\": {", python, "}}");
  cpp = absl::StrCat("std::string(\"{", absl::CEscape(which), "\\\"inputs\\\": {\") +", cpp,
                     "\n      \"}}\"");
  Snippets snippets;
  snippets.curl = CurlOf(short_enough ? json : "", python, url);
  snippets.python = absl::StrCat("import json, urllib.request\n\nbody = ", python,
                                 "\nrequest = urllib.request.Request(", NameAsJson(url),
                                 ", json.dumps(body).encode())\n"
                                 "print(json.load(urllib.request.urlopen(request)))\n");
  snippets.cpp = CppOf(cpp, url);
  return snippets;
}

}  // namespace floe::server
