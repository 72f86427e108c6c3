// Predict: the codec of PredictRequest and PredictResponse.
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "server/api/infer_call.h"
#include "server/api/methods.h"
#include "server/request/decode_predict.h"
#include "server/request/encode_predict.h"

namespace floe::server {
namespace {

constexpr char kReplyKey[] = "floe-reply";  // request metadata: "content" or "typed"

absl::StatusOr<std::optional<ReplyFormat>> WishedFormat(const CallHead& call) {
  const std::string* const wish = call.FindMetadata(kReplyKey);
  if (wish == nullptr) return std::nullopt;
  if (*wish == "content") return ReplyFormat::kContent;
  if (*wish == "typed") return ReplyFormat::kTyped;
  return absl::InvalidArgumentError(
      absl::StrCat("metadata ", kReplyKey, " is ", Quoted(*wish), "; use 'content' or 'typed'"));
}

class PredictCodec : public InferCodec {
 public:
  // Without a format the model says how replies hold numbers.
  explicit PredictCodec(std::optional<ReplyFormat> format) : format_(format) {}

  absl::Status Decode(std::string_view message, FindServed find, Inference* asked) override {
    const auto model = [&](const ModelSpec& spec) -> absl::StatusOr<ModelHandle> {
      FLOE_ASSIGN_OR_RETURN(const ServedModel* const served, find(spec));
      if (!format_) format_ = served->reply_format();
      return served->model();
    };
    return DecodePredict(message, model, asked);
  }

  absl::Status Encode(const Inference& asked, Outputs outputs, std::string* reply) override {
    return EncodePredict(
        asked, outputs,
        format_ == ReplyFormat::kContent ? ReplyEncoding::kContent : ReplyEncoding::kTyped, reply);
  }

 private:
  std::optional<ReplyFormat> format_;
};

}  // namespace

Method PredictMethod(const ApiContext& context) {
  const bool content = context.content_replies;
  return InferMethod(context, [content](const CallHead& head, CodecPlace* place) -> absl::Status {
    FLOE_ASSIGN_OR_RETURN(std::optional<ReplyFormat> format, WishedFormat(head));
    if (!format && content) format = ReplyFormat::kContent;
    place->Make<PredictCodec>(format);
    return absl::OkStatus();
  });
}

}  // namespace floe::server
