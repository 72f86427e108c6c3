// Reads the inputs of `predict`, and shows its outputs.
#include "cli/predict_io.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cli/local_model.h"
#include "cli/npy.h"
#include "cli/tensor_json.h"
#include "model/import/tensor_proto.h"

namespace floe::cli {
namespace {

absl::StatusOr<Tensor> FromJson(const SignatureDef& def, const InputArgument& argument) {
  FLOE_ASSIGN_OR_RETURN(const int index, FindInput(def, argument.name));
  const DType dtype = def.inputs[index].type.dtype;
  const auto json = nlohmann::json::parse(argument.json, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return absl::InvalidArgumentError(absl::StrCat("input '", argument.name, "': '", argument.json,
                                                   "' is neither JSON nor @FILE"));
  }
  auto tensor = TensorFromJson(json, dtype);
  if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("input '", argument.name, "'"));
  return tensor;
}

}  // namespace

absl::StatusOr<InputArgument> ParseInputArgument(const std::string& text) {
  const std::string forms =
      "'" + text + "' is not an input: NAME=@FILE.npy, @FILE.npz or NAME=JSON";
  InputArgument argument;
  if (absl::StartsWith(text, "@")) {
    argument.path = text.substr(1);
    if (argument.path.empty()) return absl::InvalidArgumentError(forms);
    return argument;
  }
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return absl::InvalidArgumentError(forms);
  argument.name = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  if (absl::StartsWith(value, "@")) {
    argument.path = value.substr(1);
  } else {
    argument.json = value;
  }
  if (argument.path.empty() && argument.json.empty()) return absl::InvalidArgumentError(forms);
  return argument;
}

absl::StatusOr<std::vector<Tensor>> TensorsFromArguments(
    const SignatureDef& def, const std::vector<InputArgument>& arguments) {
  NamedTensors arrays;
  for (const InputArgument& argument : arguments) {
    if (argument.path.empty()) {
      FLOE_ASSIGN_OR_RETURN(Tensor tensor, FromJson(def, argument));
      arrays.emplace_back(argument.name, std::move(tensor));
    } else if (argument.name.empty()) {
      FLOE_ASSIGN_OR_RETURN(NamedTensors archive, ReadNpz(argument.path));
      std::move(archive.begin(), archive.end(), std::back_inserter(arrays));
    } else if (absl::EndsWith(argument.path, ".npz")) {
      return absl::InvalidArgumentError(absl::StrCat("input '", argument.name, "': ", argument.path,
                                                     " is an archive; '@", argument.path,
                                                     "' feeds its arrays by name"));
    } else {
      FLOE_ASSIGN_OR_RETURN(Tensor tensor, ReadNpyFile(argument.path));
      arrays.emplace_back(argument.name, std::move(tensor));
    }
  }
  return MatchInputs(def, arrays, {});
}

void TensorToProto(const Tensor& tensor, tensorflow::TensorProto* proto) {
  proto->set_dtype(static_cast<tensorflow::DataType>(tensor.dtype()));
  for (const int64_t dim : tensor.shape().dims())
    proto->mutable_tensor_shape()->add_dim()->set_size(dim);
  if (tensor.shape().rank() == 0) proto->mutable_tensor_shape();
  if (tensor.dtype() == DType::kString) {
    for (int64_t i = 0; i < tensor.elements(); ++i)
      proto->add_string_val(tensor.as<std::string>()[i]);
  } else {
    proto->set_tensor_content(tensor.data(), tensor.bytes());
  }
}

void PrintTensor(const std::string& name, const TensorView& view, int64_t max_rows,
                 int64_t max_columns, std::ostream& out) {
  out << name << "  " << DTypeName(view.dtype) << view.shape.ToString() << "\n";
  const int rank = view.shape.rank();
  const int64_t elements = view.elements();
  if (elements == 0) return;
  // A line for each index of dim 0; a vector is one line.
  const int64_t rows = rank < 2 ? 1 : view.shape.dim(0);
  const int64_t columns = elements / rows;
  for (int64_t row = 0; row < std::min(rows, max_rows); ++row) {
    out << "  ";
    if (rank >= 2) out << "[" << row << "] ";
    for (int64_t column = 0; column < std::min(columns, max_columns); ++column) {
      out << (column == 0 ? "" : " ") << ElementText(view, row * columns + column);
    }
    if (columns > max_columns) out << " ... (" << columns - max_columns << " more)";
    out << "\n";
  }
  if (rows > max_rows) out << "  ... (" << rows - max_rows << " more rows)\n";
}

}  // namespace floe::cli
