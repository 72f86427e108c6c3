// A list of Examples has the wire form of a list of strings, and is read as one. With a context,
// the bytes of context and Example in a row are the message that has the features of both.
#include "server/request/decode_examples.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "base/wire_reader.h"
#include "server/request/model_spec.h"

namespace floe::server {
namespace {

constexpr uint32_t kListExamples = 1, kListContext = 2;

bool ReadList(std::string_view list, ExamplesField* out) {
  out->examples.messages.push_back(list);
  return ForEachBytesField(list, kListContext, [out](uint32_t field, std::string_view part) {
    if (field == kListExamples) return AddPiece(field, ListKind::kStrings, part, &out->examples);
    if (out->kind == ExamplesField::Kind::kListWithContext) out->context.push_back(part);
    return true;
  });
}

// A list and one with context are one of a oneof: the later one counts, and equal ones are merged.
bool ReadInput(std::string_view input, ExamplesField* out) {
  return ForEachBytesField(input, 2, [out](uint32_t field, std::string_view part) {
    const auto kind =
        field == 1 ? ExamplesField::Kind::kList : ExamplesField::Kind::kListWithContext;
    if (out->kind != kind) {
      *out = {};
      out->kind = kind;
    }
    return ReadList(part, out);
  });
}

// Whether the bytes are a message at its top level: one that is cut off would take what follows.
bool IsMessage(std::string_view bytes) {
  return ForEachBytesField(bytes, 1, [](uint32_t, std::string_view) { return true; });
}

absl::Status CheckInput(const ExamplesField& input) {
  for (const std::string_view part : input.context)
    if (!IsMessage(part)) return absl::InvalidArgumentError("input: the context is no tf.Example");
  int64_t index = 0, wrong = -1;
  value_list::ForEachPiece(input.examples, [&](std::string_view example) {
    if (wrong < 0 && !IsMessage(example)) wrong = index;
    ++index;
  });
  if (wrong < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("input: Example ", wrong, " is no tf.Example"));
}

absl::Status NoMessage(const char* type) {
  return absl::InvalidArgumentError(
      absl::StrCat("the request is not a valid tensorflow.serving.", type));
}

absl::Status TooLarge(std::string_view message) {
  return message.size() <= INT32_MAX
             ? absl::OkStatus()
             : absl::InvalidArgumentError("the request is larger than 2 GiB");
}

// The context in one piece.
absl::StatusOr<std::string_view> WholeContext(const ExamplesField& input, InputStorage* storage) {
  if (input.context.empty()) return std::string_view();
  if (input.context.size() == 1) return input.context[0];
  size_t bytes = 0;
  for (const std::string_view part : input.context) bytes += part.size();
  FLOE_RETURN_IF_ERROR(storage->Charge(static_cast<int64_t>(bytes + sizeof(std::string))));
  FLOE_RETURN_IF_ERROR(storage->Pay(static_cast<int64_t>(bytes)));
  std::string* const whole = storage->AllocateStrings(1);
  whole->reserve(bytes);
  for (const std::string_view part : input.context) whole->append(part);
  return std::string_view(*whole);
}

absl::Status FeedInput(size_t index, ExamplesField&& input, size_t message_bytes,
                       Inference* asked) {
  FLOE_ASSIGN_OR_RETURN(input.examples.before, WholeContext(input, &asked->storage));
  return FeedExamples(index, std::move(input.examples), message_bytes, asked);
}

// False: it is no task. The method may be unknown.
bool ReadTask(std::string_view message, InferenceTask* task, std::string_view* method) {
  return ForEachBytesField(message, 2, [=](uint32_t field, std::string_view part) {
    if (field == 2) return *method = part, true;
    return ReadModelSpec(part, &task->model, &task->signature);
  });
}

// The method is looked at once all of the request is read.
struct NamedTask {
  InferenceTask task;
  std::string_view method;
};
using NamedTasks = absl::InlinedVector<NamedTask, 4>;

bool SameVersion(const ModelSpec& a, const ModelSpec& b) {
  return a.version == b.version && a.label == b.label;
}

std::string_view NameOrDefault(std::string_view signature) {
  return signature.empty() ? "serving_default" : signature;
}

absl::Status CheckTasks(const NamedTasks& tasks) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    const InferenceTask& task = tasks[i].task;
    if (task.model.name.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("Found ModelSpec with an empty model name: that of task ", i));
    if (task.model.name != tasks[0].task.model.name)
      return absl::InvalidArgumentError(
          absl::StrCat("All ModelSpecs in a MultiInferenceRequest must access the same model name; "
                       "there are ",
                       Quoted(tasks[0].task.model.name), " and ", Quoted(task.model.name)));
    if (!SameVersion(task.model, tasks[0].task.model))
      return absl::InvalidArgumentError(absl::StrCat(
          "All ModelSpecs in a MultiInferenceRequest must name the same version or label; that of "
          "task ",
          i, " differs from the first one's"));
    for (size_t k = 0; k < i; ++k)
      if (NameOrDefault(tasks[k].task.signature) == NameOrDefault(task.signature))
        return absl::InvalidArgumentError(absl::StrCat("Duplicate evaluation of signature: ",
                                                       Quoted(NameOrDefault(task.signature))));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExampleMethod> MethodOf(std::string_view name) {
  for (const ExampleMethod method : {ExampleMethod::kClassify, ExampleMethod::kRegress})
    if (name == MethodNameOf(method)) return method;
  return absl::UnimplementedError(absl::StrCat(
      "Unsupported signature method_name: ", Quoted(name), "; a task's is ",
      MethodNameOf(ExampleMethod::kClassify), " or ", MethodNameOf(ExampleMethod::kRegress)));
}

}  // namespace

absl::Status ReadExampleFields(std::string_view message, ExampleFields* fields) {
  FLOE_RETURN_IF_ERROR(TooLarge(message));
  if (!ForEachBytesField(message, 2, [fields](uint32_t field, std::string_view part) {
        return field == 1 ? ReadModelSpec(part, &fields->model, &fields->signature)
                          : ReadInput(part, &fields->input);
      }))
    return NoMessage("ClassificationRequest or RegressionRequest");
  return CheckInput(fields->input);
}

absl::Status DecodeExamples(std::string_view message, const ExampleCall& call, FindModel find,
                            Inference* asked) {
  ExampleFields fields;
  FLOE_RETURN_IF_ERROR(ReadExampleFields(message, &fields));
  FLOE_ASSIGN_OR_RETURN(ModelHandle model, find(fields.model));
  FLOE_ASSIGN_OR_RETURN(const size_t input,
                        ChooseExampleSignature(std::move(model), fields.signature, call, asked));
  return FeedInput(input, std::move(fields.input), message.size(), asked);
}

absl::Status ReadMultiInferenceFields(std::string_view message, MultiInferenceFields* fields) {
  FLOE_RETURN_IF_ERROR(TooLarge(message));
  NamedTasks tasks;
  bool too_many = false;
  const bool valid = ForEachBytesField(message, 2, [&](uint32_t field, std::string_view part) {
    if (field == 2) return ReadInput(part, &fields->input);
    too_many = tasks.size() == kMostTasks;
    if (too_many) return false;
    NamedTask& named = tasks.emplace_back();
    return ReadTask(part, &named.task, &named.method);
  });
  if (too_many)
    return absl::InvalidArgumentError(
        absl::StrCat("the request has more than ", kMostTasks, " tasks"));
  if (!valid) return NoMessage("MultiInferenceRequest");
  if (tasks.empty())
    return absl::InvalidArgumentError("the request has no tasks; each names a signature");
  FLOE_RETURN_IF_ERROR(CheckTasks(tasks));
  for (NamedTask& named : tasks) {
    FLOE_ASSIGN_OR_RETURN(named.task.method, MethodOf(named.method));
    fields->tasks.push_back(named.task);
  }
  return CheckInput(fields->input);
}

absl::Status DecodeTask(const InferenceTask& task, ExamplesField input, size_t message_bytes,
                        bool check_method_name, FindModel find, Inference* asked) {
  FLOE_ASSIGN_OR_RETURN(ModelHandle model, find(task.model));
  FLOE_ASSIGN_OR_RETURN(const size_t index,
                        ChooseExampleSignature(std::move(model), task.signature,
                                               {task.method, check_method_name}, asked));
  return FeedInput(index, std::move(input), message_bytes, asked);
}

}  // namespace floe::server
