#include "model/import/graphdef/parse.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/graphdef/merge_graph.h"
#include "model/import/other_formats.h"
#include "model/import/parse_message.h"
#include "model/import/unfolded_bytes.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace floe {
namespace {

using google::protobuf::io::ZeroCopyInputStream;

absl::Status ParseBinary(ZeroCopyInputStream* stream, size_t size, tensorflow::GraphDef* def,
                         MemoryShare* paid) {
  google::protobuf::io::CodedInputStream in(stream);
  in.PushLimit(static_cast<int>(size));
  absl::Status merged = MergeGraph(&in, def, paid);
  if (!absl::IsInvalidArgument(merged)) return merged;
  return absl::InvalidArgumentError(absl::StrCat("not a GraphDef: ", std::string(merged.message()),
                                                 " near byte ", in.CurrentPosition(), " of ",
                                                 size));
}

// A file as protobuf's streams read theirs. Each piece of a text is paid before it is parsed.
class FileStream : public google::protobuf::io::CopyingInputStream {
 public:
  explicit FileStream(InputFile* file) : file_(file) {}

  int Read(void* buffer, int size) override {
    if (!status_.ok()) return -1;
    auto* const bytes = static_cast<char*>(buffer);
    const auto got = file_->Read(bytes, static_cast<size_t>(size));
    if (got.ok() && text_paid_ != nullptr) PayText({bytes, *got});
    if (!got.ok()) status_ = got.status();
    return status_.ok() ? static_cast<int>(*got) : -1;
  }

  // `first` was read before it was known to be text.
  absl::Status PayTextTo(MemoryShare* paid, std::string_view first) {
    text_paid_ = paid;
    PayText(first);
    return status_;
  }
  const absl::Status& status() const { return status_; }

 private:
  void PayText(std::string_view piece) {
    absl::StatusOr<MemoryShare> share = TakeMemory(UnfoldedTextBytes(piece));
    if (share.ok())
      text_paid_->Add(*std::move(share));
    else
      status_ = share.status();
  }

  InputFile* const file_;
  MemoryShare* text_paid_ = nullptr;
  absl::Status status_;
};

absl::Status CheckSize(size_t size) {
  if (size == 0) return absl::InvalidArgumentError("the file is empty");
  if (size > INT32_MAX)
    return absl::InvalidArgumentError(
        absl::StrCat("a GraphDef of ", size, " bytes is past protobuf's limit of 2 GiB"));
  return absl::OkStatus();
}

// Whether bytes that are no GraphDef are a MetaGraphDef, which only parsing them tells.
absl::Status CheckPaidNoMetaGraph(std::string_view bytes) {
  const int64_t worst = static_cast<int64_t>(bytes.size()) * (kUnfoldedMessage / 2);
  FLOE_ASSIGN_OR_RETURN(
      const MemoryShare share,
      TakeMemory(std::min(UnfoldedBytes(bytes, *tensorflow::MetaGraphDef::descriptor()), worst)));
  return CheckNoMetaGraph(bytes);
}

// What was parsed, unless it was not: `recheck` then finds out what it is instead.
absl::StatusOr<ParsedGraphDef> Finish(ParsedGraphDef graph, const absl::Status& parsed, size_t size,
                                      const std::function<absl::Status()>& recheck) {
  if (!parsed.ok()) {
    graph = ParsedGraphDef();  // makes room
    if (absl::IsInvalidArgument(parsed)) FLOE_RETURN_IF_ERROR(recheck());
    return parsed;
  }
  if (graph.def->node_size() == 0) return absl::InvalidArgumentError("the graph has no nodes");
  // Constants take over what they hold of the message, and pay for it themselves.
  (void)graph.memory.Resize(
      std::max<int64_t>(0, graph.memory.bytes() - static_cast<int64_t>(size)));
  return graph;
}

}  // namespace

absl::StatusOr<ParsedGraphDef> ParseGraphDef(std::string_view bytes) {
  FLOE_RETURN_IF_ERROR(CheckSize(bytes.size()));
  FLOE_RETURN_IF_ERROR(CheckNoOtherFormat(bytes));
  SilenceProtobuf();
  ParsedGraphDef graph;
  graph.text = LooksLikeText(bytes);
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  absl::Status parsed;
  if (graph.text) {
    FLOE_ASSIGN_OR_RETURN(graph.memory, TakeMemory(UnfoldedTextBytes(bytes)));
    parsed = ParseText(&stream, graph.def.get());
  } else {
    parsed = ParseBinary(&stream, bytes.size(), graph.def.get(), &graph.memory);
  }
  return Finish(std::move(graph), parsed, bytes.size(),
                [&] { return CheckPaidNoMetaGraph(bytes); });
}

absl::StatusOr<ParsedGraphDef> ParseGraphDefFile(InputFile* file) {
  FLOE_RETURN_IF_ERROR(CheckSize(file->size()));
  SilenceProtobuf();
  FileStream source(file);
  constexpr int kPiece = 1 << 20;
  google::protobuf::io::CopyingInputStreamAdaptor stream(&source, kPiece);
  const void* data;
  int count;
  if (!stream.Next(&data, &count)) return source.status();
  const std::string_view head(static_cast<const char*>(data), static_cast<size_t>(count));
  FLOE_RETURN_IF_ERROR(CheckNoOtherFormat(head));
  ParsedGraphDef graph;
  graph.text = LooksLikeText(head);
  if (graph.text) FLOE_RETURN_IF_ERROR(source.PayTextTo(&graph.memory, head));
  stream.BackUp(count);
  absl::Status parsed = graph.text
                            ? ParseText(&stream, graph.def.get())
                            : ParseBinary(&stream, file->size(), graph.def.get(), &graph.memory);
  if (!source.status().ok()) parsed = source.status();
  return Finish(std::move(graph), parsed, file->size(), [&]() -> absl::Status {
    const auto size = static_cast<int64_t>(file->size());
    FLOE_ASSIGN_OR_RETURN(const MemoryShare share, TakeMemory(size));
    FLOE_ASSIGN_OR_RETURN(const FileBytes again, ReadFile(file->path(), size));
    if (again.identity == file->identity()) return CheckPaidNoMetaGraph(again.view());
    return absl::AbortedError(absl::StrCat(file->path(), " has changed while it was read"));
  });
}

}  // namespace floe
