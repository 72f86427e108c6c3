// `floectl load`, `unload` and `reload`: models of a server come and go.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/rpc.h"
#include "config/config_rpcs.h"
#include "floe/admin.pb.h"
#include "kserve/grpc_service.pb.h"

namespace floe::cli {
namespace {

constexpr double kLoadSeconds = 120;

struct ModelOptions {
  Target target;
  std::string model;
};

template <typename Request, typename Response>
absl::Status ChangeModel(const ModelOptions& options, const char* method, const char* done,
                         Context& context) {
  Request request;
  Response response;
  request.set_model_name(options.model);
  FLOE_RETURN_IF_ERROR(
      RpcClient(options.target)
          .Call(absl::StrCat("/inference.GRPCInferenceService/", method), request, &response));
  context.out << options.model << ": " << done << "\n";
  return absl::OkStatus();
}

using Change = absl::Status (*)(const ModelOptions& options, Context& context);

void AddModelCommand(CLI::App& app, Context& context, const char* name, const char* help,
                     const std::string& footer, Change change) {
  auto options = std::make_shared<ModelOptions>();
  options->target.timeout_s = kLoadSeconds;
  CLI::App* const command = app.add_subcommand(name, help);
  command->add_option("MODEL", options->model, "Name of the model")->required();
  AddOperatorTargetOptions(*command, options->target, "Seconds to wait for the model");
  command->footer(footer);
  command->callback([options, change, &context] {
    context.action = [options, change, &context] { return change(*options, context); };
  });
}

absl::Status ReadAgain(const Target& target, Context& context) {
  ReloadResponse response;
  FLOE_RETURN_IF_ERROR(RpcClient(target).Call(kReadAgainMethod, ReloadRequest(), &response));
  context.out << "generation " << response.generation() << "\n";
  return absl::OkStatus();
}

void AddReload(CLI::App& app, Context& context) {
  auto target = std::make_shared<Target>();
  target->timeout_s = kLoadSeconds;
  CLI::App* const command = app.add_subcommand(
      "reload", "Have a server read its configuration again, as SIGHUP does, and wait for it");
  AddOperatorTargetOptions(*command, *target, "Seconds to wait for the models to load");
  command->footer(
      "Prints the generation of the configuration that is active then.\n"
      "Example:\n  floectl reload --target unix:/run/floe/admin.sock");
  command->callback([target, &context] {
    context.action = [target, &context] { return ReadAgain(*target, context); };
  });
}

}  // namespace

void AddModelsCommands(CLI::App& app, Context& context) {
  AddModelCommand(app, context, "load",
                  "Have a server serve a model of its configuration, or look for versions",
                  "The configuration is that which the server began with.\n"
                  "Example:\n  floectl load mnist_conv --target unix:/run/floe/admin.sock",
                  [](const ModelOptions& options, Context& to) {
                    return ChangeModel<inference::RepositoryModelLoadRequest,
                                       inference::RepositoryModelLoadResponse>(
                        options, "RepositoryModelLoad", "loaded", to);
                  });
  AddModelCommand(app, context, "unload",
                  "Have a server end a model, until it is loaded or the server restarts",
                  "Example:\n  floectl unload mnist_conv --target unix:/run/floe/admin.sock",
                  [](const ModelOptions& options, Context& to) {
                    return ChangeModel<inference::RepositoryModelUnloadRequest,
                                       inference::RepositoryModelUnloadResponse>(
                        options, "RepositoryModelUnload", "unloaded", to);
                  });
  AddReload(app, context);
}

}  // namespace floe::cli
