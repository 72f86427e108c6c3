// A request of HTTP that asks for an inference, as a call.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "server/api/http.h"
#include "server/api/infer_call.h"

namespace floe::server {

struct RestOptions {
  int64_t max_body_bytes = int64_t{64} << 20;   // of requests, packed and unpacked
  Duration timeout = std::chrono::seconds(30);  // of an inference
};

// The request as a call of gRPC, with the shorter of both deadlines.
CallHead CallHeadOf(const HttpHead& head, const RestOptions& options);

// How a body is packed, by Content-Encoding.
enum class BodyPacking : uint8_t { kNone, kZlib };
// UNIMPLEMENTED for other encodings than gzip, deflate and identity.
absl::StatusOr<BodyPacking> PackingOf(const HttpHead& head);

// The body as it was before it was packed, with `padding` zeros behind it. RESOURCE_EXHAUSTED for
// one that unpacks to more than `max_bytes`, or to far more than was sent.
absl::StatusOr<std::string> UnpackBody(std::string_view packed, int64_t max_bytes, size_t padding);

// The version that a path's {version} or {label} means, beside its {model}. They are views into the
// head. INVALID_ARGUMENT: the version is no number.
absl::StatusOr<ModelSpec> SpecOf(const HttpHead& head);

// What path and head of an inference say, for its codec, which outlives both.
struct RestTarget {
  std::string model, label;
  std::optional<int64_t> version;
  BodyPacking packing = BodyPacking::kNone;
  int64_t max_body_bytes = 0;
  const MemoryBudget* memory = nullptr;  // pays; null: nobody does

  absl::Status Read(const HttpHead& head, const RestOptions& options, const MemoryBudget* budget);
  ModelSpec spec() const { return {model, version, label}; }
  // Whether so much JSON is not read on the connection's thread.
  bool IsSlow(size_t json_bytes) const;
  // The body; where it is packed, of the memory of `*unpacked`, which `storage` pays for. It has
  // kJsonPadding bytes behind it.
  absl::StatusOr<std::string_view> Unpacked(std::string_view body, InputStorage* storage,
                                            std::string* unpacked) const;
};

// What a codec's Encode may say of a reply, beside its body.
struct RestReplyForm {
  std::string content_type = "application/json";
  HttpFields fields;
};

// Makes the codec of a request, whose Encode writes the body of the reply. Its messages have
// kJsonPadding bytes behind them. The form stays as long as the codec.
using OpenRestCodec =
    std::function<absl::Status(const HttpHead& head, RestReplyForm* form, CodecPlace* place)>;

// POST `pattern`.
HttpRoute InferenceRoute(std::string pattern, const OpenInference& door, const RestOptions& options,
                         OpenRestCodec open);

}  // namespace floe::server
