// Random changes to any protobuf message, by reflection.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "tests/fuzz/random.h"

namespace floe::fuzz {

class ProtoMutator {
 public:
  explicit ProtoMutator(Random* random) : random_(*random) {}

  // One change somewhere in the tree: a field set, cleared or altered, an element of a list added,
  // removed, doubled or moved. Strings stay ASCII, as proto3 wants UTF-8.
  void Mutate(google::protobuf::Message* message);

  // Some fields of `from`, anywhere in its tree, take the place of fields of the same message type
  // in `to`, or join a list of them.
  void CrossOver(google::protobuf::Message* to, const google::protobuf::Message& from);

  // Appends a value to a list.
  void Add(google::protobuf::Message* message, const google::protobuf::FieldDescriptor* list) {
    AddElement({message, list});
  }

  std::string Text(const std::string& old);  // another short string, often like the old one

 private:
  struct Place {
    google::protobuf::Message* message;
    const google::protobuf::FieldDescriptor* field;
  };
  void Collect(google::protobuf::Message* message, int depth, std::vector<Place>* places);
  void MutateSingular(const Place& place);
  void MutateRepeated(const Place& place);
  void AddElement(const Place& place);
  void SetElement(const Place& place, int index);

  Random& random_;
};

}  // namespace floe::fuzz
