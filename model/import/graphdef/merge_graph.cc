#include "model/import/graphdef/merge_graph.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "model/import/message_ptr.h"
#include "model/import/unfolded_bytes.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace floe {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int kMaxDepth = 100;                // of nested messages
constexpr int64_t kLarge = int64_t{1} << 18;  // bytes that are worth a way of their own

// Where the message is malformed, the stream's position says.
absl::Status Malformed() { return absl::InvalidArgumentError("malformed or cut off"); }

// Fields of one message as they came, until they are merged into it.
class Plain {
 public:
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }

  // The value of the field whose tag was read; `size` where it has a length, which was read too.
  absl::Status Add(CodedInputStream* in, uint32_t tag, std::optional<uint32_t> size) {
    if (!size) {
      google::protobuf::io::StringOutputStream stream(&bytes_);
      google::protobuf::io::CodedOutputStream out(&stream);
      return WireFormatLite::SkipField(in, tag, &out) ? absl::OkStatus() : Malformed();
    }
    if (*size >= kLarge) {
      FLOE_ASSIGN_OR_RETURN(MemoryShare share, TakeMemory(*size));
      memory_.Add(std::move(share));
      bytes_.reserve(bytes_.size() + *size + 16);
    }
    Varint(tag);
    Varint(*size);
    const size_t at = bytes_.size();
    bytes_.resize(at + *size);
    return in->ReadRaw(bytes_.data() + at, static_cast<int>(*size)) ? absl::OkStatus()
                                                                    : Malformed();
  }

  template <typename Message>
  absl::Status MergeInto(Message* message, MemoryShare* paid) {
    if (bytes_.empty()) return absl::OkStatus();
    // What cannot be walked counts as the worst.
    const int64_t unfolded =
        std::min(UnfoldedBytes(bytes_, *Message::descriptor()), size() * (kUnfoldedMessage / 2));
    FLOE_ASSIGN_OR_RETURN(MemoryShare share, TakeMemory(unfolded));
    paid->Add(std::move(share));
    CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes_.data()),
                        static_cast<int>(bytes_.size()));
    in.SetRecursionLimit(kMaxDepth);
    if (!message->MergePartialFromCodedStream(&in) || !in.ConsumedEntireMessage())
      return Malformed();
    if (size() > 4 * kLarge) std::string().swap(bytes_);
    bytes_.clear();
    memory_ = MemoryShare();
    return absl::OkStatus();
  }

 private:
  void Varint(uint32_t value) {
    for (; value >= 128; value >>= 7) bytes_.push_back(static_cast<char>(value | 128));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
  MemoryShare memory_;  // of large ones
};

class Merger {
 public:
  Merger(CodedInputStream* in, MemoryShare* paid) : in_(in), paid_(paid) {}

  absl::Status Merge(tensorflow::GraphDef* graph) {
    return Fields(graph, [&](int field) -> std::optional<absl::Status> {
      if (field == tensorflow::GraphDef::kNodeFieldNumber) return Merge(graph->add_node());
      if (field == tensorflow::GraphDef::kLibraryFieldNumber)
        return Merge(graph->mutable_library());
      return std::nullopt;
    });
  }

 private:
  absl::Status Merge(tensorflow::FunctionDefLibrary* library) {
    return Fields(library, [&](int field) -> std::optional<absl::Status> {
      if (field != tensorflow::FunctionDefLibrary::kFunctionFieldNumber) return std::nullopt;
      return Merge(library->add_function());
    });
  }

  absl::Status Merge(tensorflow::FunctionDef* function) {
    return Fields(function, [&](int field) -> std::optional<absl::Status> {
      if (field != tensorflow::FunctionDef::kNodeDefFieldNumber) return std::nullopt;
      return Merge(function->add_node_def());
    });
  }

  absl::Status Merge(tensorflow::NodeDef* node) {
    return Fields(node, [&](int field) -> std::optional<absl::Status> {
      if (field != tensorflow::NodeDef::kAttrFieldNumber) return std::nullopt;
      return MergeAttribute(node);
    });
  }

  // An entry of the map: the last of several keys and all of several values count.
  absl::Status MergeAttribute(tensorflow::NodeDef* node) {
    std::string key;
    const auto value = NewMessage<tensorflow::AttrValue>();
    while (in_->BytesUntilLimit() > 0) {
      const uint32_t tag = in_->ReadTag();
      constexpr uint32_t kKey = 1 << 3 | 2, kValue = 2 << 3 | 2;
      if (tag != kKey && tag != kValue) {
        if (tag >> 3 == 0 || !WireFormatLite::SkipField(in_, tag)) return Malformed();
        continue;
      }
      FLOE_ASSIGN_OR_RETURN(const uint32_t size, ReadLength());
      if (tag == kKey) {
        if (!in_->ReadString(&key, static_cast<int>(size)) ||
            !google::protobuf::internal::IsStructurallyValidUTF8(key))
          return Malformed();
        continue;
      }
      const CodedInputStream::Limit outer = in_->PushLimit(static_cast<int>(size));
      FLOE_RETURN_IF_ERROR(Merge(value.get()));
      in_->PopLimit(outer);
    }
    (*node->mutable_attr())[key] = std::move(*value);
    return absl::OkStatus();
  }

  absl::Status Merge(tensorflow::AttrValue* value) {
    return Fields(value, [&](int field) -> std::optional<absl::Status> {
      if (field != tensorflow::AttrValue::kTensorFieldNumber) return std::nullopt;
      return Merge(value->mutable_tensor());
    });
  }

  absl::Status Merge(tensorflow::TensorProto* tensor) {
    return Fields(tensor, [&](int field) -> std::optional<absl::Status> {
      if (field == tensorflow::TensorProto::kFloatValFieldNumber)
        return MergeNumbers(tensor->mutable_float_val());
      if (field == tensorflow::TensorProto::kDoubleValFieldNumber)
        return MergeNumbers(tensor->mutable_double_val());
      if (field != tensorflow::TensorProto::kTensorContentFieldNumber) return std::nullopt;
      tensor->clear_tensor_content();
      const int size = in_->BytesUntilLimit();
      FLOE_ASSIGN_OR_RETURN(MemoryShare share, TakeMemory(size));
      paid_->Add(std::move(share));
      return in_->ReadString(tensor->mutable_tensor_content(), size) ? absl::OkStatus()
                                                                     : Malformed();
    });
  }

  // A packed list, which lies in the file as in memory.
  template <typename T>
  absl::Status MergeNumbers(google::protobuf::RepeatedField<T>* list) {
    const int bytes = in_->BytesUntilLimit(), count = bytes / static_cast<int>(sizeof(T));
    if (count * static_cast<int>(sizeof(T)) != bytes || list->size() > INT32_MAX - count)
      return Malformed();
    FLOE_ASSIGN_OR_RETURN(MemoryShare share, TakeMemory(bytes));
    paid_->Add(std::move(share));
    const int before = list->size();
    list->Resize(before + count, T{});
    return in_->ReadRaw(list->mutable_data() + before, bytes) ? absl::OkStatus() : Malformed();
  }

  // `large` merges the value of a large field, all bytes up to the limit, or says that it has no
  // way of its own.
  template <typename Message, typename Large>
  absl::Status Fields(Message* message, const Large& large) {
    Plain plain;
    while (in_->BytesUntilLimit() > 0) {
      const uint32_t tag = in_->ReadTag();
      if (tag >> 3 == 0) return Malformed();
      std::optional<uint32_t> size;
      if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
        FLOE_ASSIGN_OR_RETURN(size, ReadLength());
      }
      if (size && *size >= kLarge) {
        FLOE_RETURN_IF_ERROR(plain.MergeInto(message, paid_));
        const CodedInputStream::Limit outer = in_->PushLimit(static_cast<int>(*size));
        const std::optional<absl::Status> merged = large(static_cast<int>(tag >> 3));
        in_->PopLimit(outer);
        if (merged && !merged->ok()) return *merged;
        if (merged) continue;
      }
      FLOE_RETURN_IF_ERROR(plain.Add(in_, tag, size));
      if (plain.size() >= kLarge) FLOE_RETURN_IF_ERROR(plain.MergeInto(message, paid_));
    }
    return plain.MergeInto(message, paid_);
  }

  absl::StatusOr<uint32_t> ReadLength() {
    uint64_t size;
    if (!in_->ReadVarint64(&size) || size > static_cast<uint64_t>(in_->BytesUntilLimit()))
      return Malformed();
    return static_cast<uint32_t>(size);
  }

  CodedInputStream* const in_;
  MemoryShare* const paid_;
};

}  // namespace

absl::Status MergeGraph(CodedInputStream* in, tensorflow::GraphDef* graph, MemoryShare* paid) {
  return Merger(in, paid).Merge(graph);
}

}  // namespace floe
