#include "cli/signature_report.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/table.h"

namespace floe::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson TensorsJson(const std::vector<SignatureTensor>& tensors) {
  OrderedJson list = OrderedJson::array();
  for (const SignatureTensor& tensor : tensors) {
    OrderedJson entry = {{"key", tensor.key},
                         {"tensor", tensor.tensor_name},
                         {"dtype", DTypeName(tensor.type.dtype)}};
    entry["shape"] = nullptr;  // unknown rank
    if (tensor.type.shape.rank_known()) {
      entry["shape"] = OrderedJson::array();
      for (const Dim dim : tensor.type.shape.dims())
        entry["shape"].push_back(dim.concrete() ? dim.size() : -1);
    }
    if (tensor.optional) entry["optional"] = true;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

void PrintSignature(const SignatureDef& def, std::ostream& out) {
  out << "signature " << def.name << " (" << def.method << ")\n";
  Table table({"", "KEY", "TENSOR", "TYPE"});
  for (const bool inputs : {true, false}) {
    for (const SignatureTensor& tensor : inputs ? def.inputs : def.outputs) {
      table.Add({inputs ? (tensor.optional ? "in, optional" : "in") : "out", tensor.key,
                 tensor.tensor_name, TypeText(tensor.type)});
    }
  }
  table.Print(out, 2);
}

OrderedJson SignatureJson(const SignatureDef& def) {
  return {{"name", def.name},
          {"method", def.method},
          {"inputs", TensorsJson(def.inputs)},
          {"outputs", TensorsJson(def.outputs)}};
}

std::string TypeText(const TensorType& type) {
  if (type.dtype == DType::kInvalid) return "?";
  return absl::StrCat(DTypeName(type.dtype),
                      type.shape.rank_known() ? type.shape.ToString() : "[...]");
}

}  // namespace floe::cli
