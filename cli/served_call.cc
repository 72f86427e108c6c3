#include "cli/served_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/status.h"
#include "cli/predict_io.h"
#include "cli/served_signatures.h"

namespace floe::cli {
namespace {

namespace tfs = tensorflow::serving;

tfs::ModelSpec SpecOf(const ServedCall& call) {
  tfs::ModelSpec spec;
  spec.set_name(call.model);
  if (call.version != 0) spec.mutable_version()->set_value(call.version);
  if (!call.label.empty()) spec.set_version_label(call.label);
  return spec;
}

}  // namespace

CLI::Option* AddInputArguments(CLI::App& app, std::vector<std::string>& inputs) {
  return app
      .add_option("INPUT", inputs,
                  "NAME=@FILE.npy, @FILE.npz (all its arrays, by name) or NAME=JSON; the model "
                  "gives the dtypes")
      ->check([](const std::string& text) {
        const auto argument = ParseInputArgument(text);
        return argument.ok() ? std::string() : std::string(argument.status().message());
      });
}

std::vector<CLI::Option*> AddVersionOptions(CLI::App& app, ServedCall& call) {
  CLI::Option* const version = app.add_option("--version", call.version,
                                              "Version of the model (default: the server's choice)")
                                   ->type_name("N")
                                   ->check(CLI::PositiveNumber);
  CLI::Option* const label =
      app.add_option("--label", call.label, "The version that has this label, instead of --version")
          ->type_name("NAME")
          ->excludes(version);
  return {version, label};
}

absl::StatusOr<CalledSignature> FetchCalled(const RpcClient& client, const ServedCall& call) {
  FLOE_ASSIGN_OR_RETURN(ServedSignatures served, FetchSignatures(client, SpecOf(call)));
  std::vector<std::string> names;
  for (SignatureDef& def : served.signatures) {
    if (def.name == call.signature) return CalledSignature{served.version, std::move(def)};
    names.push_back(def.name);
  }
  return absl::NotFoundError(absl::StrCat("model ", Quoted(call.model), " has no signature ",
                                          Quoted(call.signature), "; it has ", QuotedList(names)));
}

tfs::PredictRequest RequestOf(const ServedCall& call, const SignatureDef& def,
                              const std::vector<Tensor>& inputs) {
  tfs::PredictRequest request;
  *request.mutable_model_spec() = SpecOf(call);
  request.mutable_model_spec()->set_signature_name(call.signature);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].valid())
      TensorToProto(inputs[i], &(*request.mutable_inputs())[def.inputs[i].key]);
  }
  return request;
}

}  // namespace floe::cli
