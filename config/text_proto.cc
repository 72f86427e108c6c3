// protobuf's parser with an error collector that names fields and lines.
#include "config/text_proto.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/nearest.h"

namespace floe {
namespace {

namespace protobuf = google::protobuf;

std::string FieldHint(const std::string& message_name, const std::string& field) {
  const protobuf::Descriptor* const type =
      protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(message_name);
  if (type == nullptr) return "";
  std::vector<std::string> names;
  names.reserve(type->field_count());
  for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
  return absl::StrCat(NearestHint(field, names), "; expected one of ", absl::StrJoin(names, ", "));
}

// Unknown fields come as warnings, so that the parser goes on behind the first of them.
class Mistakes : public protobuf::io::ErrorCollector {
 public:
  Mistakes(std::string file, TextValues values) : file_(std::move(file)), values_(values) {}

  void AddError(int line, int /*column*/, const std::string& message) override {
    lines_.push_back(absl::StrCat(
        file_, ":", line + 1, ": not valid text format",
        MayShow(message) ? absl::StrCat(": ", message)
                         : "; expected NAME: \"TEXT\", with \\n for the ends of lines"));
  }
  void AddWarning(int line, int column, const std::string& message) override {
    // 'Message type "a.B" has no field named "c".'
    const std::vector<std::string> parts = absl::StrSplit(message, '"');
    if (parts.size() != 5 || parts[2] != " has no field named ") {
      // TensorFlow Serving's own examples have deprecated fields.
      if (!absl::StrContains(message, "deprecated")) AddError(line, column, message);
      return;
    }
    const std::string type = parts[1].substr(parts[1].rfind('.') + 1);
    // It may be a line of a value.
    const std::string name =
        values_ == TextValues::kShown ? absl::StrCat("'", parts[3], "' ") : std::string();
    lines_.push_back(absl::StrCat(file_, ":", line + 1, ": unknown field ", name, "of ", type,
                                  FieldHint(parts[1], parts[3])));
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  // The parser's messages about names and about line ends hold nothing of a value.
  bool MayShow(const std::string& message) const {
    return values_ == TextValues::kShown || absl::StartsWith(message, "Non-repeated field ") ||
           absl::StartsWith(message, "String literals cannot cross line boundaries");
  }

  const std::string file_;
  const TextValues values_;
  std::vector<std::string> lines_;
};

}  // namespace

absl::Status ParseTextProto(const std::string& text, const std::string& file,
                            protobuf::Message* message, TextPlaces* places, TextValues values) {
  Mistakes mistakes(file, values);
  protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&mistakes);
  parser.AllowUnknownField(true);
  // A hostile caller of the RPC sends no text, but a file may be anything.
  parser.SetRecursionLimit(32);
  if (places != nullptr) parser.WriteLocationsTo(places);
  const bool parsed = parser.ParseFromString(text, message);
  if (!mistakes.lines().empty())
    return absl::InvalidArgumentError(absl::StrJoin(mistakes.lines(), "\n"));
  if (!parsed)
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": not valid text format of ", std::string(message->GetDescriptor()->full_name())));
  return absl::OkStatus();
}

std::string PlaceOf(const std::string& file, const TextPlaces& places,
                    const protobuf::Message& message, const std::string& field) {
  const protobuf::FieldDescriptor* const found = message.GetDescriptor()->FindFieldByName(field);
  if (found == nullptr) return file;
  const int line = places.GetLocation(found, found->is_repeated() ? 0 : -1).line;
  return line < 0 ? file : absl::StrCat(file, ":", line + 1);
}

}  // namespace floe
