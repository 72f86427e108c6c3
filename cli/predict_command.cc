// `floectl predict`: one Predict call.
#include <algorithm>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/http_status.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/http_client.h"
#include "cli/npy.h"
#include "cli/predict_io.h"
#include "cli/rpc.h"
#include "cli/served_call.h"
#include "cli/string_array.h"
#include "cli/tensor_json.h"
#include "model/import/tensor_proto.h"
#include "tensorflow_serving/apis/predict.pb.h"

namespace floe::cli {
namespace {

namespace tfs = tensorflow::serving;

struct PredictOptions {
  Target target;
  ServedCall call;
  std::string out;
  std::vector<std::string> inputs;
  bool json = false, content = false, http = false;
};

constexpr size_t kMostShownBytes = 2000;  // of an answer that is no JSON

// A name as a part of a path.
std::string UrlPart(const std::string& name) {
  std::string part;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '.' || c == '_' || c == '-')
      part.push_back(c);
    else
      absl::StrAppend(&part, "%", absl::Hex(byte, absl::kZeroPad2));
  }
  return part;
}

// In the order of their keys.
absl::StatusOr<NamedTensors> Outputs(tfs::PredictResponse* response) {
  std::vector<std::string> keys;
  for (const auto& [key, proto] : response->outputs()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  NamedTensors outputs;
  for (const std::string& key : keys) {
    auto tensor = TensorFromProto(&(*response->mutable_outputs())[key]);
    if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("output '", key, "'"));
    outputs.emplace_back(key, *std::move(tensor));
  }
  return outputs;
}

absl::Status WriteArchive(const std::string& path, const NamedTensors& outputs, std::ostream& out) {
  NamedTensors arrays;
  for (const auto& [key, tensor] : outputs) {
    arrays.emplace_back(absl::StrReplaceAll(key, {{":", "__"}}),
                        tensor.dtype() == DType::kString ? EncodeStrings(tensor.view()) : tensor);
  }
  FLOE_RETURN_IF_ERROR(WriteNpz(path, arrays));
  out << "wrote " << arrays.size() << " array(s) to " << path << "\n";
  return absl::OkStatus();
}

void PrintJson(const tfs::ModelSpec& spec, const NamedTensors& outputs, std::ostream& out) {
  nlohmann::ordered_json json = {{"model", spec.name()},
                                 {"version", spec.version().value()},
                                 {"signature", spec.signature_name()},
                                 {"outputs", nlohmann::ordered_json::object()}};
  for (const auto& [key, tensor] : outputs) {
    json["outputs"][key] = {
        {"dtype", DTypeName(tensor.dtype())},
        {"shape", std::vector<int64_t>(tensor.shape().dims().begin(), tensor.shape().dims().end())},
        {"values", TensorToJson(tensor.view())}};
  }
  out << json.dump() << "\n";
}

void PrintTables(const tfs::ModelSpec& spec, const NamedTensors& outputs, std::ostream& out) {
  constexpr int64_t kMaxRows = 20, kMaxColumns = 16;
  out << "model " << spec.name() << ", version " << spec.version().value() << ", signature "
      << spec.signature_name() << "\n";
  for (const auto& [key, tensor] : outputs)
    PrintTensor(key, tensor.view(), kMaxRows, kMaxColumns, out);
}

absl::StatusOr<std::vector<InputArgument>> ArgumentsOf(const PredictOptions& options) {
  std::vector<InputArgument> arguments;
  for (const std::string& text : options.inputs) {
    FLOE_ASSIGN_OR_RETURN(InputArgument argument, ParseInputArgument(text));
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

// {"signature_name": ..., "inputs": {...}}. JSON of the command line is sent as it is: the server
// knows the dtypes.
absl::StatusOr<std::string> JsonBody(const PredictOptions& options) {
  FLOE_ASSIGN_OR_RETURN(const std::vector<InputArgument> arguments, ArgumentsOf(options));
  std::string inputs;
  const auto add = [&inputs](const std::string& name, const std::string& json) {
    absl::StrAppend(&inputs, inputs.empty() ? "" : ",", nlohmann::json(name).dump(), ":", json);
  };
  for (const InputArgument& argument : arguments) {
    if (argument.path.empty()) {
      add(argument.name, argument.json);
    } else if (argument.name.empty()) {
      FLOE_ASSIGN_OR_RETURN(const NamedTensors arrays, ReadNpz(argument.path));
      for (const auto& [name, tensor] : arrays) add(name, TensorToJson(tensor.view()).dump());
    } else {
      FLOE_ASSIGN_OR_RETURN(const Tensor tensor, ReadNpyFile(argument.path));
      add(argument.name, TensorToJson(tensor.view()).dump());
    }
  }
  return absl::StrCat("{\"signature_name\":", nlohmann::json(options.call.signature).dump(),
                      ",\"inputs\":{", inputs, "}}");
}

// By REST, and the answer as it comes.
absl::Status RunHttp(const PredictOptions& options, Context& context) {
  const ServedCall& call = options.call;
  std::string path = absl::StrCat("/v1/models/", UrlPart(call.model));
  if (call.version != 0) absl::StrAppend(&path, "/versions/", call.version);
  if (!call.label.empty()) absl::StrAppend(&path, "/labels/", UrlPart(call.label));
  FLOE_ASSIGN_OR_RETURN(const std::string body, JsonBody(options));
  FLOE_ASSIGN_OR_RETURN(const HttpAnswer answer,
                        PostJson(options.target, absl::StrCat(path, ":predict"), body));
  if (answer.status == 200) {
    context.out << answer.body;
    if (!absl::EndsWith(answer.body, "\n")) context.out << "\n";
    return absl::OkStatus();
  }
  const auto json = nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  const bool has_error = json.is_object() && json.contains("error") && json["error"].is_string();
  return absl::Status(CodeOfHttp(answer.status),
                      absl::StrCat(has_error ? json["error"].get<std::string>()
                                             : answer.body.substr(0, kMostShownBytes),
                                   " (HTTP ", answer.status, ")"));
}

absl::Status Run(const PredictOptions& options, Context& context) {
  if (options.http) return RunHttp(options, context);
  FLOE_ASSIGN_OR_RETURN(const std::vector<InputArgument> arguments, ArgumentsOf(options));
  const RpcClient client(options.target);
  FLOE_ASSIGN_OR_RETURN(const CalledSignature called, FetchCalled(client, options.call));
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                        TensorsFromArguments(called.def, arguments));

  const tfs::PredictRequest request = RequestOf(options.call, called.def, inputs);
  tfs::PredictResponse response;
  RpcClient::Metadata metadata;
  if (options.content) metadata.emplace_back("floe-reply", "content");
  FLOE_RETURN_IF_ERROR(client.Call(kPredictMethod, request, &response, metadata));

  FLOE_ASSIGN_OR_RETURN(const NamedTensors outputs, Outputs(&response));
  if (options.json) {
    PrintJson(response.model_spec(), outputs, context.out);
  } else if (options.out.empty()) {
    PrintTables(response.model_spec(), outputs, context.out);
  }
  if (options.out.empty()) return absl::OkStatus();
  return WriteArchive(options.out, outputs, options.json ? context.err : context.out);
}

}  // namespace

void AddPredictCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* const command =
      app.add_subcommand("predict", "Send one Predict call to a server and show the reply");
  command->add_option("MODEL", options->call.model, "Name of the model")->required();
  AddInputArguments(*command, options->inputs);
  AddTargetOptions(*command, options->target);
  command->add_option("--signature", options->call.signature, "Signature to call")
      ->type_name("NAME")
      ->capture_default_str();
  AddVersionOptions(*command, options->call);
  CLI::Option* const out =
      command->add_option("-o,--out", options->out, "Write the outputs to an .npz file")
          ->type_name("FILE.npz");
  command->add_flag("--json", options->json, "Print JSON");
  CLI::Option* const content =
      command->add_flag("--content", options->content,
                        "Ask for the reply as raw bytes (metadata floe-reply: content)");
  command
      ->add_flag("--http", options->http,
                 "By the REST API (POST /v1/models/MODEL:predict); prints the JSON of the answer")
      ->excludes(out)
      ->excludes(content);
  command->footer(
      "JSON lists give the shape: 1.5 is a scalar, [[1,2,3]] is [1,3]. Strings: \"text\" or "
      "{\"b64\": \"...\"}.\n"
      "Example:\n  floectl predict mnist_beginner input=@digits.npy --target 127.0.0.1:8500\n"
      "  floectl predict adder 'x=[1, 2.5]' 'y=[3, 4]' --json\n"
      "  floectl predict adder 'x=[1, 2.5]' 'y=[3, 4]' --http");
  command->callback([options, &context] {
    context.action = [options, &context] { return Run(*options, context); };
  });
}

}  // namespace floe::cli
