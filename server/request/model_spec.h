// tensorflow.serving.ModelSpec as bytes: how requests name a model, and replies the one that
// answered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "server/request/inference.h"
#include "server/request/wire_writer.h"

namespace floe::server {

// Adds what the message says to `*model` and `*signature`, which are views into it. Names need not
// be UTF-8. False: the bytes are no ModelSpec.
bool ReadModelSpec(std::string_view message, ModelSpec* model, std::string_view* signature);

// What a reply names. Its views stay.
struct ReplySpec {
  std::string_view model;
  std::optional<int64_t> version;
  std::string_view signature;
};
ReplySpec ReplySpecOf(const Inference& asked);

// As the field `field` of a reply.
size_t SpecFieldSize(uint32_t field, const ReplySpec& spec);
void WriteSpecField(uint32_t field, const ReplySpec& spec, CodedOutputStream& out);

}  // namespace floe::server
