#include "server/api/rpc.h"

#include "absl/strings/str_cat.h"
#include "base/nearest.h"

namespace floe::server {

const std::string_view* CallInfo::FindMetadata(std::string_view key) const {
  for (const auto& [name, value] : metadata) {
    if (name == key) return &value;
  }
  return nullptr;
}

const UnaryMethod* MethodTable::FindUnary(const std::string& path) const {
  const auto it = unary_.find(path);
  return it == unary_.end() ? nullptr : &it->second;
}

const StreamMethod* MethodTable::FindStream(const std::string& path) const {
  const auto it = stream_.find(path);
  return it == stream_.end() ? nullptr : &it->second;
}

std::vector<std::string> MethodTable::Paths() const {
  std::vector<std::string> paths;
  paths.reserve(unary_.size() + stream_.size());
  for (const auto& [path, method] : unary_) paths.push_back(path);
  for (const auto& [path, method] : stream_) paths.push_back(path);
  return paths;
}

absl::Status UnknownMethodError(const MethodTable& table, const std::string& path) {
  constexpr size_t kShown = 200;  // a path is the caller's text and may be long
  const std::string shown = path.substr(0, kShown);
  return absl::UnimplementedError(absl::StrCat("this server has no method '", shown, "'; nearest: ",
                                               QuotedList(NearestNames(shown, table.Paths()))));
}

}  // namespace floe::server
