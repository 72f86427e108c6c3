#include "tests/fuzz/proto_mutator.h"

#include <cmath>
#include <limits>

namespace floe::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMaxDepth = 12;  // of the places looked at; a message may be deeper

}  // namespace

double Random::Real() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kNumbers[] = {0,    -0.,   1,     -1,        0.5,        2,
                                        1e30, 1e-40, 1e300, kInfinity, -kInfinity, NAN};
  return OneIn(3) ? static_cast<double>(Below(2000) - 1000) / 16 : Pick(kNumbers);
}

std::string ProtoMutator::Text(const std::string& old) {
  std::string text = old;
  switch (random_.Below(6)) {
    case 0:
      return "";
    case 1:
      if (!text.empty()) text.pop_back();
      return text;
    case 2:
      if (!text.empty())
        text[random_.Below(text.size())] = static_cast<char>(' ' + random_.Below(95));
      return text;
    case 3:
      return text + ":" + std::to_string(random_.Below(4));
    case 4:
      return "^" + text;
    default:
      return text + static_cast<char>(' ' + random_.Below(95));
  }
}

// Every field that is set, and of each message one that is not.
void ProtoMutator::Collect(Message* message, int depth, std::vector<Place>* places) {
  const Reflection& reflection = *message->GetReflection();
  const auto* descriptor = message->GetDescriptor();
  if (descriptor->field_count() == 0) return;
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(*message, &set);
  places->push_back({message, descriptor->field(random_.Below(descriptor->field_count()))});
  for (const FieldDescriptor* field : set) {
    places->push_back({message, field});
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || depth >= kMaxDepth) continue;
    if (!field->is_repeated()) {
      Collect(reflection.MutableMessage(message, field), depth + 1, places);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i)
      Collect(reflection.MutableRepeatedMessage(message, field, i), depth + 1, places);
  }
}

void ProtoMutator::Mutate(Message* message) {
  std::vector<Place> places;
  Collect(message, 0, &places);
  if (places.empty()) return;
  const Place place = random_.Pick(places);
  if (place.field->is_repeated()) {
    MutateRepeated(place);
  } else {
    MutateSingular(place);
  }
}

void ProtoMutator::MutateSingular(const Place& place) {
  const Reflection& reflection = *place.message->GetReflection();
  if (random_.OneIn(4)) {
    reflection.ClearField(place.message, place.field);
  } else {
    SetElement(place, -1);
  }
}

void ProtoMutator::MutateRepeated(const Place& place) {
  const Reflection& reflection = *place.message->GetReflection();
  const int size = reflection.FieldSize(*place.message, place.field);
  const int choice = size == 0 ? 0 : random_.Below(7);
  const int index = size == 0 ? 0 : random_.Below(size);
  switch (choice) {
    case 0:
      AddElement(place);
      break;
    case 1:
      reflection.SwapElements(place.message, place.field, index, size - 1);
      reflection.RemoveLast(place.message, place.field);
      break;
    case 2:
      reflection.SwapElements(place.message, place.field, index, random_.Below(size));
      break;
    case 3:
      if (place.field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const std::string copy = reflection.GetRepeatedMessage(*place.message, place.field, index)
                                     .SerializePartialAsString();
        reflection.AddMessage(place.message, place.field)->ParsePartialFromString(copy);
      } else {
        AddElement(place);
      }
      break;
    case 4:
      if (random_.OneIn(4)) reflection.ClearField(place.message, place.field);
      break;
    default:
      SetElement(place, index);
      break;
  }
}

void ProtoMutator::AddElement(const Place& place) {
  const Reflection& reflection = *place.message->GetReflection();
  switch (place.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      reflection.AddMessage(place.message, place.field);
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      reflection.AddString(place.message, place.field, "");
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      reflection.AddInt32(place.message, place.field, 0);
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      reflection.AddInt64(place.message, place.field, 0);
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      reflection.AddUInt32(place.message, place.field, 0);
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      reflection.AddUInt64(place.message, place.field, 0);
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      reflection.AddFloat(place.message, place.field, 0);
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      reflection.AddDouble(place.message, place.field, 0);
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      reflection.AddBool(place.message, place.field, false);
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      reflection.AddEnumValue(place.message, place.field, 0);
      break;
  }
  SetElement(place, reflection.FieldSize(*place.message, place.field) - 1);
}

// A new value for element `index` of a list, or, with -1, for a single field.
void ProtoMutator::SetElement(const Place& place, int index) {
  const Reflection& reflection = *place.message->GetReflection();
  Message* const message = place.message;
  const FieldDescriptor* const field = place.field;
  const auto set = [&](auto repeated, auto single, auto value) {
    if (index >= 0) {
      (reflection.*repeated)(message, field, index, value);
    } else {
      (reflection.*single)(message, field, value);
    }
  };
  const int64_t number = random_.Integer();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      Mutate(index >= 0 ? reflection.MutableRepeatedMessage(message, field, index)
                        : reflection.MutableMessage(message, field));
      break;
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string old = index >= 0 ? reflection.GetRepeatedString(*message, field, index)
                                         : reflection.GetString(*message, field);
      set(&Reflection::SetRepeatedString, &Reflection::SetString, Text(old));
      break;
    }
    case FieldDescriptor::CPPTYPE_INT32:
      set(&Reflection::SetRepeatedInt32, &Reflection::SetInt32, static_cast<int32_t>(number));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      set(&Reflection::SetRepeatedInt64, &Reflection::SetInt64, number);
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      set(&Reflection::SetRepeatedUInt32, &Reflection::SetUInt32, static_cast<uint32_t>(number));
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      set(&Reflection::SetRepeatedUInt64, &Reflection::SetUInt64, static_cast<uint64_t>(number));
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      set(&Reflection::SetRepeatedFloat, &Reflection::SetFloat, static_cast<float>(random_.Real()));
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      set(&Reflection::SetRepeatedDouble, &Reflection::SetDouble, random_.Real());
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      set(&Reflection::SetRepeatedBool, &Reflection::SetBool, random_.OneIn(2));
      break;
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto* type = field->enum_type();
      const int value = random_.OneIn(10)
                            ? static_cast<int>(number)
                            : type->value(random_.Below(type->value_count()))->number();
      set(&Reflection::SetRepeatedEnumValue, &Reflection::SetEnumValue, value);
      break;
    }
  }
}

void ProtoMutator::CrossOver(Message* to, const Message& from) {
  const std::unique_ptr<Message> copy(from.New());
  copy->CopyFrom(from);
  std::vector<Place> targets, sources;
  Collect(to, 0, &targets);
  Collect(copy.get(), 0, &sources);
  constexpr int kAttempts = 20;
  for (int i = 0; i < kAttempts; ++i) {
    const Place& target = random_.Pick(targets);
    const Place& source = random_.Pick(sources);
    if (target.field != source.field) continue;
    if (target.field->is_repeated()) {
      target.message->MergeFrom(*source.message);
    } else {
      target.message->CopyFrom(*source.message);
    }
    return;
  }
}

}  // namespace floe::fuzz
