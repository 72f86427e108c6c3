// What a rule has read of a layer's configuration and call. What it leaves is an error: an option
// that a rule does not know would otherwise be answered wrongly without a word.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/import/keras/json.h"
#include "model/import/keras/value.h"

namespace floe::keras {

struct Call {
  std::vector<KValue> args;
  std::map<std::string, KValue> kwargs;
};

// Of one call of a layer. The objects outlive it. Threading: one thread.
class ReadLog {
 public:
  // `operation`: of keras.ops, whose options are all arguments of a function. `keras2`: a call may
  // insist on training.
  explicit ReadLog(bool operation = false, bool keras2 = false)
      : operation_(operation), keras2_(keras2) {}

  // `object` is one whose members are to be read; `what` it is, for a message ("its cell").
  void Watch(const Json& object, const std::string& what) { watched_.emplace(&object, what); }
  void Note(const Json& object, const std::string& member) { members_[&object].insert(member); }
  void NoteArgument(int position) { positions_.insert(position); }
  void NoteArgument(const std::string& name) { names_.insert(name); }
  void NoteAll(const Call& call);

  // UNIMPLEMENTED, which names the first option or argument that was not read, is not null and may
  // change an answer.
  absl::Status Check(const Call& call) const;

 private:
  bool SaysNothing(const std::string& name, const KValue& value) const;

  const bool operation_, keras2_;
  std::map<const Json*, std::string> watched_;
  std::map<const Json*, std::set<std::string>> members_;
  std::set<int> positions_;
  std::set<std::string> names_;
};

}  // namespace floe::keras
