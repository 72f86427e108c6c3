// `floectl run`: one run of a model file, from .npz to .npz.
#include <map>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/local_model.h"
#include "cli/model_path.h"
#include "cli/npz.h"
#include "cli/string_array.h"

namespace floe::cli {
namespace {

struct RunOptions {
  std::string file, inputs, outputs;
  std::string gemm = "auto", device = "cpu";
  LocalOptions local;  // but for `gemm`
  std::vector<std::string> shapes;
  bool by_position = false;
  bool stored = false;
  int threads = 1;
};

// "NAME=2,3" (or "NAME=" for a scalar).
absl::StatusOr<std::pair<std::string, Shape>> ParseShape(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError("'" + text + "' is not NAME=DIM,DIM,...");
  }
  Shape shape;
  const std::string dims = text.substr(equals + 1);
  for (const auto& part : absl::StrSplit(dims, ',', absl::SkipEmpty())) {
    int64_t dim = 0;
    if (!absl::SimpleAtoi(part, &dim) || dim < 0) {
      return absl::InvalidArgumentError("'" + text +
                                        "' has a dimension that is not an integer >= 0");
    }
    shape.push_back(dim);
  }
  return std::make_pair(text.substr(0, equals), shape);
}

absl::Status Run(const RunOptions& options, Context& context) {
  LocalOptions local = options.local;
  FLOE_ASSIGN_OR_RETURN(local.compile.kernels.gemm, GemmBackendFromName(options.gemm));
  FLOE_RETURN_IF_ERROR(UseDevice(options.device, "none", &local.compile));
  MatchOptions match;
  match.by_position = options.by_position;
  for (const std::string& text : options.shapes) {
    FLOE_ASSIGN_OR_RETURN(auto shape, ParseShape(text));
    match.string_shapes.push_back(std::move(shape));
  }
  NamedTensors arrays;
  if (!options.inputs.empty()) {
    FLOE_ASSIGN_OR_RETURN(arrays, ReadNpz(options.inputs));
  }
  if (!match.by_position) local.feeds = FeedsOf(arrays);
  FLOE_ASSIGN_OR_RETURN(const std::string file, FindModelFile(options.file, context.err));
  FLOE_ASSIGN_OR_RETURN(const LocalModel loaded, LoadLocal(file, local));
  match.signature = loaded.signature;
  FLOE_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, MatchInputs(loaded.def(), arrays, match));
  FLOE_ASSIGN_OR_RETURN(const BoundCall call, BindCall(*loaded.signature, inputs));
  ExecContext exec(options.threads);
  FLOE_RETURN_IF_ERROR(RunCall(call, exec));

  NamedTensors outputs;
  for (size_t i = 0; i < loaded.def().outputs.size(); ++i) {
    const TensorView& view = exec.Output(static_cast<int>(i));
    Tensor tensor = view.dtype == DType::kString ? EncodeStrings(view) : Tensor::Copy(view);
    const std::string name = ArrayName(loaded.def().outputs[i].key);
    // Two keys may name one tensor; it is written once.
    if (FindTensor(outputs, name) == nullptr) outputs.emplace_back(name, std::move(tensor));
  }
  const Compression compression = options.stored ? Compression::kStored : Compression::kDeflated;
  FLOE_RETURN_IF_ERROR(WriteNpz(options.outputs, outputs, compression));
  for (const auto& [name, tensor] : outputs) {
    context.out << name << " " << DTypeName(tensor.dtype()) << tensor.shape().ToString() << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

void AddRunCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* const command =
      app.add_subcommand("run", "Run a model file once in this process, from .npz to .npz");
  command->add_option("FILE", options->file, kModelHelp)->required();
  command->add_option("-i,--inputs", options->inputs, "Arrays to feed (.npz)")->type_name("IN.npz");
  command->add_option("-o,--outputs", options->outputs, "Where to write the results (.npz)")
      ->type_name("OUT.npz")
      ->required();
  command
      ->add_option("--fetch", options->local.fetches,
                   "A tensor to fetch ('node' or 'node:1'); can be repeated. "
                   "Default: all outputs of the signature")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      ->add_option("--init", options->local.init_nodes,
                   "A node to run first, which fills lookup tables; can be repeated. "
                   "Default: every initialiser of a table in use")
      ->type_name("NODE")
      ->allow_extra_args(false);
  command
      ->add_option("--shape", options->shapes,
                   "Shape of a string array whose shape is open in the model; can be repeated")
      ->type_name("NAME=D,D,..")
      ->check([](const std::string& text) {
        const auto shape = ParseShape(text);
        return shape.ok() ? std::string() : std::string(shape.status().message());
      })
      ->allow_extra_args(false);
  command->add_flag("--by-position", options->by_position,
                    "Feed the arrays in the order of the signature, whatever their names");
  command
      ->add_option("--signature", options->local.signature,
                   "Signature to run (default serving_default)")
      ->type_name("NAME");
  AddTagsOption(*command, options->local.tags);
  command->add_option("--threads", options->threads, "Threads inside one run")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--stored", options->stored, "Write the results without compression");
  AddDeviceOption(*command, options->device, kDeviceHelp);
  AddGemmOption(*command, options->gemm);
  AddPrecisionOption(*command, options->local.compile.kernels.precision);
  AddDisablePassOption(*command, options->local.compile.disabled_passes);
  AddRouteOption(*command, options->local.compile.kernels.routes);
  command->footer(
      "Keys in .npz files are input keys or tensor names, with ':' written as '__'; ':0' may be "
      "omitted.\n"
      "Strings are one 1-D uint8 array. Each element is a little-endian u32 length, then its "
      "bytes.\n"
      "Example:\n  floectl run frozen.pb --inputs in.npz --outputs out.npz --fetch softmax");
  command->callback([options, &context] {
    context.action = [options, &context] { return Run(*options, context); };
  });
}

}  // namespace floe::cli
