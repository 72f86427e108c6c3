// Imports, feeds, fetches and compiles a model file in this process.
#include "cli/local_model.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file_beneath.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/status.h"
#include "cli/string_array.h"
#include "config/config.h"
#include "kernels/cuda/device/devices.h"
#include "runtime/shape_hints.h"

namespace floe::cli {
namespace {

std::string WithoutOutput0(const std::string& tensor_name) {
  return absl::EndsWith(tensor_name, ":0") ? tensor_name.substr(0, tensor_name.size() - 2)
                                           : tensor_name;
}

// Every way an array may be named to reach this input.
std::vector<std::string> NamesOf(const SignatureTensor& input) {
  std::vector<std::string> names;
  for (const std::string& name : {input.key, WithoutOutput0(input.tensor_name)}) {
    for (const std::string& full : {name, name + ":0"}) {
      names.push_back(full);
      names.push_back(absl::StrReplaceAll(full, {{":", "__"}}));
    }
  }
  return names;
}

absl::StatusOr<Tensor> Fit(const SignatureDef& def, int index, const std::string& array,
                           const Tensor& tensor, const MatchOptions& options) {
  const SignatureTensor& input = def.inputs[index];
  const DType wanted = input.type.dtype;
  if (tensor.dtype() == wanted) return tensor;
  const std::string where = absl::StrCat("array ", Quoted(array), " for input ", Quoted(input.key));
  if (wanted != DType::kString || tensor.dtype() != DType::kUInt8) {
    return absl::InvalidArgumentError(absl::StrCat(where, " is ", DTypeName(tensor.dtype()),
                                                   ", the model takes ", DTypeName(wanted),
                                                   "; save it as ", DTypeName(wanted)));
  }
  SymShape declared = input.type.shape;
  if (!declared.rank_known() && options.signature != nullptr) {
    const SymShape hint = HintedShape(*options.signature, index);
    if (hint.rank_known() && hint.rank() == 0) declared = hint;
  }
  for (const auto& [name, shape] : options.string_shapes) {
    if (name == array) declared = SymShape(shape);
  }
  auto flat = DecodeStrings(tensor);
  if (!flat.ok()) return Annotate(flat.status(), where);
  auto shaped = ShapeStrings(*flat, declared);
  if (!shaped.ok()) return Annotate(shaped.status(), where);
  return shaped;
}

absl::StatusOr<const Signature*> PickSignature(const Model& model, const LocalOptions& options) {
  const std::string& name = options.signature;
  const Signature* found = model.Find(name);
  const bool only = model.signatures().size() == 1 && model.left_out().empty();
  if (found == nullptr && name.empty() && (only || options.any_signature)) {
    found = &model.signatures().begin()->second;
  }
  if (found != nullptr) return found;
  const std::string wanted = name.empty() ? "serving_default" : name;
  const auto left_out = model.left_out().find(wanted);
  if (left_out != model.left_out().end())
    return Annotate(left_out->second, absl::StrCat("signature ", Quoted(wanted)));
  std::vector<std::string> names;
  for (const auto& [known, signature] : model.signatures()) names.push_back(known);
  return absl::NotFoundError(absl::StrCat("no signature '", name.empty() ? "serving_default" : name,
                                          "'; the model has ", QuotedList(names)));
}

absl::StatusOr<const Signature::Variant*> ChooseVariant(const Signature& signature,
                                                        absl::Span<const Tensor> inputs) {
  std::vector<TensorView> views;
  for (const Tensor& tensor : inputs) views.push_back(tensor.view());
  std::vector<const TensorView*> fed;
  for (size_t i = 0; i < views.size(); ++i) fed.push_back(inputs[i].valid() ? &views[i] : nullptr);
  return signature.Choose(absl::MakeSpan(fed));
}

}  // namespace

absl::Status UseDevice(const std::string& device, const std::string& libraries,
                       CompileOptions* options) {
  const DeviceChoice choice = DeviceChoice::Parse(device).value_or(DeviceChoice{});
  if (choice.kind != DeviceChoice::Kind::kCuda) return absl::OkStatus();
  // Nobody limits what a tool allocates there.
  cuda::Devices devices([](int64_t) { return int64_t{0}; }, cuda::VendorChoice::Named(libraries));
  FLOE_ASSIGN_OR_RETURN(auto opened, devices.Find(std::max(choice.index, 0)));
  options->islands = Placement{.device = DeviceKind::kCuda, .small = true, .on = std::move(opened)};
  return absl::OkStatus();
}

absl::StatusOr<LocalModel> LoadLocal(const std::string& path, const LocalOptions& options) {
  ImportOptions import;
  import.fetches = options.fetches;
  import.feeds = options.feeds;
  import.tags = options.tags;
  FLOE_ASSIGN_OR_RETURN(ImportedModel imported, ImportFile(path, import));
  return CompileLocal(std::move(imported), path, options);
}

absl::StatusOr<LocalModel> CompileLocal(ImportedModel imported, const std::string& path,
                                        const LocalOptions& options) {
  LocalModel local;
  local.format = imported.format;
  Model::Source source;
  source.info.name = path;
  source.info.path = path;
  source.graph = std::move(imported.graph);
  source.signatures = std::move(imported.signatures);
  source.init_nodes = options.init_nodes;
  source.left_out = std::move(imported.left_out);
  source.asset_directory =
      imported.asset_directory.empty() ? DirectoryOf(path) : std::move(imported.asset_directory);
  FLOE_ASSIGN_OR_RETURN(local.model, Model::Create(std::move(source), options.compile));
  FLOE_ASSIGN_OR_RETURN(local.signature, PickSignature(*local.model, options));
  return local;
}

absl::StatusOr<int> FindInput(const SignatureDef& def, const std::string& array) {
  // Keys first: a key may look like another input's tensor name.
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    if (def.inputs[i].key == array) return static_cast<int>(i);
  }
  std::vector<std::string> keys;
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    const std::vector<std::string> names = NamesOf(def.inputs[i]);
    if (std::find(names.begin(), names.end(), array) != names.end()) return static_cast<int>(i);
    keys.push_back(def.inputs[i].key);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(array), " names no input of the model; nearest: ",
                   QuotedList(NearestNames(array, keys)), "; all inputs: ", QuotedList(keys)));
}

std::vector<ImportOptions::Feed> FeedsOf(const NamedTensors& arrays) {
  std::vector<ImportOptions::Feed> feeds;
  for (const auto& [name, tensor] : arrays)
    feeds.push_back({name, tensor.dtype() == DType::kUInt8 ? DType::kInvalid : tensor.dtype()});
  return feeds;
}

absl::StatusOr<std::vector<Tensor>> MatchInputs(const SignatureDef& def, const NamedTensors& arrays,
                                                const MatchOptions& options) {
  std::vector<Tensor> inputs(def.inputs.size());
  if (options.by_position && arrays.size() > inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(arrays.size(), " arrays for the ", inputs.size(), " inputs of the model"));
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    const auto& [name, tensor] = arrays[i];
    int index = static_cast<int>(i);
    if (!options.by_position) {
      FLOE_ASSIGN_OR_RETURN(index, FindInput(def, name));
    }
    const SignatureTensor& input = def.inputs[index];
    if (inputs[index].valid()) {
      return absl::InvalidArgumentError(
          absl::StrCat("array ", Quoted(name), " is the second one for input ", Quoted(input.key)));
    }
    FLOE_ASSIGN_OR_RETURN(inputs[index], Fit(def, index, name, tensor, options));
  }
  return inputs;
}

absl::StatusOr<BoundCall> BindCall(const Signature& signature, absl::Span<const Tensor> inputs) {
  FLOE_ASSIGN_OR_RETURN(const Signature::Variant* const variant, ChooseVariant(signature, inputs));
  BoundCall call;
  call.variant = variant->compiled.get();
  std::vector<Shape> shapes;
  for (const int i : variant->inputs) {
    call.inputs.push_back(inputs[i].valid() ? inputs[i] : signature.def().inputs[i].default_value);
    shapes.push_back(call.inputs.back().shape());
  }
  FLOE_ASSIGN_OR_RETURN(call.plan, call.variant->Bind(shapes));
  if (!call.plan->has_rows()) return call;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (call.variant->InputHasRows(static_cast<int>(i)) && shapes[i].rank() > 0) {
      call.rows = shapes[i].dim(0);
      break;
    }
  }
  return call;
}

absl::StatusOr<MadeUpCall> MakeUpCall(const Signature& signature, const MadeUpOptions& options) {
  MadeUpCall made;
  const auto fits = [&](absl::Span<const Tensor> inputs) {
    return BindCall(signature, inputs).status();
  };
  FLOE_ASSIGN_OR_RETURN(made.made, MakeUpInputs(signature, options, fits));
  FLOE_ASSIGN_OR_RETURN(made.call, BindCall(signature, made.made.inputs));
  return made;
}

absl::Status RunCall(const BoundCall& call, ExecContext& context) {
  FLOE_RETURN_IF_ERROR(context.Prepare(call.plan, call.rows));
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    context.BindInput(static_cast<int>(i), call.inputs[i].data());
  }
  return context.Run();
}

std::string ArrayName(const std::string& tensor_name) {
  return absl::StrReplaceAll(WithoutOutput0(tensor_name), {{":", "__"}});
}

absl::StatusOr<Tensor> TakeRows(const Tensor& tensor, int64_t rows) {
  Shape shape = tensor.shape();
  const int64_t have = shape.dim(0);
  if (have == 0)
    return absl::InvalidArgumentError("an input without rows cannot be repeated to a batch");
  shape.set_dim(0, rows);
  FLOE_RETURN_IF_ERROR(
      CheckedElements(shape.dims(), std::max<size_t>(DTypeSize(tensor.dtype()), 1)).status());
  Tensor out = Tensor::Allocate(tensor.dtype(), shape);
  const int64_t row_elements = tensor.elements() / have;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t from = row % have * row_elements;
    if (tensor.dtype() == DType::kString) {
      std::copy_n(tensor.as<std::string>() + from, row_elements,
                  static_cast<std::string*>(out.mutable_data()) + row * row_elements);
    } else if (row_elements != 0) {
      const size_t element = DTypeSize(tensor.dtype());
      std::memcpy(static_cast<char*>(out.mutable_data()) + row * row_elements * element,
                  tensor.as<char>() + from * element, row_elements * element);
    }
  }
  return out;
}

absl::StatusOr<std::vector<Tensor>> WithRows(const Signature& signature,
                                             absl::Span<const Tensor> inputs, int64_t rows) {
  FLOE_ASSIGN_OR_RETURN(const Signature::Variant* const variant, ChooseVariant(signature, inputs));
  std::vector<Tensor> result(inputs.begin(), inputs.end());
  for (size_t i = 0; i < variant->inputs.size(); ++i) {
    Tensor& tensor = result[variant->inputs[i]];
    if (!tensor.valid() || tensor.shape().rank() == 0 ||
        !variant->compiled->InputHasRows(static_cast<int>(i)))
      continue;
    FLOE_ASSIGN_OR_RETURN(tensor, TakeRows(tensor, rows));
  }
  return result;
}

}  // namespace floe::cli
