#include "model/import/parse_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/unfolded_bytes.h"

namespace floe {
namespace {

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text_.empty())
      text_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

absl::Status ParseBinary(std::string_view bytes, google::protobuf::Message* message) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kMaxMessageDepth);
  if (message->ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage())
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("not a ", message->GetDescriptor()->name(),
                                                 ": malformed or cut off near byte ",
                                                 stream.CurrentPosition(), " of ", bytes.size()));
}

}  // namespace

void SilenceProtobuf() {
  static const bool once = (google::protobuf::SetLogHandler(nullptr), true);
  (void)once;
}

absl::Status ParseText(google::protobuf::io::ZeroCopyInputStream* stream,
                       google::protobuf::Message* message) {
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxMessageDepth);
  if (parser.Parse(stream, message)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("not a ", message->GetDescriptor()->name(),
                                                 " in text form: ", Escaped(error.text())));
}

bool LooksLikeText(std::string_view bytes) {
  constexpr size_t kProbe = 512;
  const std::string_view head = bytes.substr(0, kProbe);
  return !head.empty() && std::none_of(head.begin(), head.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return (u < 0x20 && c != '\n' && c != '\r' && c != '\t') || u == 0x7f;
  });
}

absl::StatusOr<MemoryShare> TakeForParsing(std::string_view bytes, bool text,
                                           const google::protobuf::Descriptor& type) {
  if (MemoryScope::Current() == nullptr) return MemoryShare();
  // What cannot be walked counts as the worst.
  const int64_t unfolded = text ? UnfoldedTextBytes(bytes) : UnfoldedBytes(bytes, type);
  const int64_t worst = static_cast<int64_t>(bytes.size()) * kUnfoldedMessage / 2;
  return TakeMemory(std::min(unfolded, worst));
}

absl::Status ParseMessage(std::string_view bytes, google::protobuf::Message* message) {
  if (bytes.size() > INT32_MAX)
    return absl::InvalidArgumentError(absl::StrCat("a ", message->GetDescriptor()->name(), " of ",
                                                   bytes.size(),
                                                   " bytes is past protobuf's limit of 2 GiB"));
  SilenceProtobuf();
  if (!LooksLikeText(bytes)) return ParseBinary(bytes, message);
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  return ParseText(&stream, message);
}

absl::Status ParsePaid(std::string_view bytes, google::protobuf::Message* message,
                       MemoryShare* memory) {
  FLOE_ASSIGN_OR_RETURN(*memory,
                        TakeForParsing(bytes, LooksLikeText(bytes), *message->GetDescriptor()));
  return ParseMessage(bytes, message);
}

}  // namespace floe
