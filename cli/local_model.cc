#include "cli/local_model.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file_beneath.h"
#include "base/nearest.h"
#include "base/status.h"
#include "cli/string_array.h"
#include "model/half.h"

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

absl::StatusOr<Tensor> Fit(const SignatureTensor& input, const std::string& array,
                           const Tensor& tensor, const MatchOptions& options) {
  const DType wanted = input.type.dtype;
  if (tensor.dtype() == wanted) return tensor;
  const std::string where = absl::StrCat("array '", array, "' for input '", input.key, "'");
  if (wanted != DType::kString || tensor.dtype() != DType::kUInt8) {
    return absl::InvalidArgumentError(absl::StrCat(where, " is ", DTypeName(tensor.dtype()),
                                                   ", the model takes ", DTypeName(wanted),
                                                   "; save it as ", DTypeName(wanted)));
  }
  SymShape declared = input.type.shape;
  for (const auto& [name, shape] : options.string_shapes) {
    if (name == array) declared = SymShape(shape);
  }
  auto flat = DecodeStrings(tensor);
  if (!flat.ok()) return Annotate(flat.status(), where);
  auto shaped = ShapeStrings(*flat, declared);
  if (!shaped.ok()) return Annotate(shaped.status(), where);
  return shaped;
}

absl::StatusOr<const Signature*> PickSignature(const Model& model, const std::string& name) {
  const Signature* found = model.Find(name);
  if (found == nullptr && name.empty() && model.signatures().size() == 1) {
    found = &model.signatures().begin()->second;
  }
  if (found != nullptr) return found;
  std::vector<std::string> names;
  for (const auto& [known, signature] : model.signatures()) names.push_back(known);
  return absl::NotFoundError(absl::StrCat("no signature '", name.empty() ? "serving_default" : name,
                                          "'; the model has ", QuotedList(names)));
}

struct Form {
  const CompiledSignature* compiled = nullptr;
  const std::vector<int>* input_of = nullptr;  // in the signature's inputs
};

absl::StatusOr<Form> ChooseForm(const Signature& signature, absl::Span<const Tensor> inputs) {
  std::vector<TensorView> views;
  for (const Tensor& tensor : inputs) views.push_back(tensor.view());
  std::vector<const TensorView*> fed;
  for (size_t i = 0; i < views.size(); ++i) fed.push_back(inputs[i].valid() ? &views[i] : nullptr);
  Form form;
  FLOE_ASSIGN_OR_RETURN(form.compiled, signature.Choose(fed, &form.input_of));
  return form;
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

Tensor MadeUp(DType dtype, const Shape& shape, std::mt19937& random) {
  Tensor tensor = Tensor::Allocate(dtype, shape);
  std::uniform_real_distribution<float> uniform(0, 1);
  const auto fill = [&](auto* values) {
    for (int64_t i = 0; i < tensor.elements(); ++i) values[i] = uniform(random);
  };
  void* const data = tensor.mutable_data();
  switch (dtype) {
    case DType::kFloat32:
      fill(static_cast<float*>(data));
      break;
    case DType::kFloat64:
      fill(static_cast<double*>(data));
      break;
    case DType::kFloat16:
      fill(static_cast<Half*>(data));
      break;
    case DType::kBFloat16:
      fill(static_cast<BFloat16*>(data));
      break;
    default:
      if (tensor.bytes() != 0) std::memset(data, 0, tensor.bytes());
  }
  return tensor;
}

}  // namespace

absl::StatusOr<LocalModel> LoadLocal(const std::string& path, const LocalOptions& options) {
  ImportOptions import;
  import.fetches = options.fetches;
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
  source.asset_directory = DirectoryOf(path);
  FLOE_ASSIGN_OR_RETURN(local.model, Model::Create(std::move(source), options.compile));
  FLOE_ASSIGN_OR_RETURN(local.signature, PickSignature(*local.model, options.signature));
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
  return absl::InvalidArgumentError(absl::StrCat(
      "'", array, "' names no input of the model; nearest: ", QuotedList(NearestNames(array, keys)),
      "; all inputs: ", QuotedList(keys)));
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
          absl::StrCat("array '", name, "' is the second one for input '", input.key, "'"));
    }
    FLOE_ASSIGN_OR_RETURN(inputs[index], Fit(input, name, tensor, options));
  }
  return inputs;
}

absl::StatusOr<BoundCall> BindCall(const Signature& signature, absl::Span<const Tensor> inputs) {
  FLOE_ASSIGN_OR_RETURN(const Form form, ChooseForm(signature, inputs));
  BoundCall call;
  call.form = form.compiled;
  std::vector<Shape> shapes;
  for (const int i : *form.input_of) {
    // The form in which optional inputs are inputs needs all of them.
    call.inputs.push_back(inputs[i].valid() ? inputs[i] : signature.def().inputs[i].default_value);
    shapes.push_back(call.inputs.back().shape());
  }
  FLOE_ASSIGN_OR_RETURN(call.plan, call.form->Bind(shapes));
  if (!call.plan->has_rows()) return call;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (call.form->InputHasRows(static_cast<int>(i)) && shapes[i].rank() > 0) {
      call.rows = shapes[i].dim(0);
      break;
    }
  }
  return call;
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

absl::StatusOr<std::vector<Tensor>> WithRows(const Signature& signature,
                                             absl::Span<const Tensor> inputs, int64_t rows) {
  FLOE_ASSIGN_OR_RETURN(const Form form, ChooseForm(signature, inputs));
  std::vector<Tensor> result(inputs.begin(), inputs.end());
  for (size_t i = 0; i < form.input_of->size(); ++i) {
    Tensor& tensor = result[(*form.input_of)[i]];
    if (!tensor.valid() || tensor.shape().rank() == 0 ||
        !form.compiled->InputHasRows(static_cast<int>(i)))
      continue;
    FLOE_ASSIGN_OR_RETURN(tensor, TakeRows(tensor, rows));
  }
  return result;
}

absl::StatusOr<std::vector<Tensor>> MadeUpInputs(const Signature& signature, int64_t rows,
                                                 int64_t unknown_dim) {
  std::mt19937 random(20240101);
  std::vector<Tensor> inputs;
  for (const SignatureTensor& input : signature.def().inputs) {
    if (input.optional) {
      inputs.emplace_back();
      continue;
    }
    const SymShape& declared = input.type.shape;
    Shape shape;
    if (!declared.rank_known()) shape.push_back(rows);
    for (int axis = 0; axis < declared.rank(); ++axis) {
      const Dim dim = declared.dim(axis);
      shape.push_back(dim.concrete() ? dim.size() : axis == 0 ? rows : unknown_dim);
    }
    const size_t element =
        input.type.dtype == DType::kString ? sizeof(std::string) : DTypeSize(input.type.dtype);
    if (element == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input '", input.key, "' is a ", DTypeName(input.type.dtype), "; give it with --inputs"));
    }
    FLOE_RETURN_IF_ERROR(CheckedElements(shape.dims(), element, int64_t{1} << 36).status());
    inputs.push_back(MadeUp(input.type.dtype, shape, random));
  }
  return inputs;
}

}  // namespace floe::cli
