#include "model/import/keras/layer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/budget.h"
#include "base/quoted.h"
#include "base/status.h"
#include "base/work_note.h"

namespace floe::keras {
namespace {

struct Registered {
  LayerRule rule;
  Masks masks;
};

std::map<std::string, Registered>& Registry() {
  static std::map<std::string, Registered> registry;
  return registry;
}

constexpr const char* kExport =
    "export the model with model.export() in Python and serve the SavedModel that it writes";

void FlattenInto(const KValue& value, std::vector<KTensor>* out) {
  if (value.is_tensor()) out->push_back(value.tensor);
  std::vector<size_t> order(value.items.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  if (value.kind == KValue::Kind::kDict)
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return value.keys[a] < value.keys[b]; });
  for (const size_t k : order) FlattenInto(value.items[k], out);
}

KTensor* FirstTensor(KValue* value) {
  if (value->is_tensor()) return &value->tensor;
  for (KValue& item : value->items) {
    if (KTensor* const found = FirstTensor(&item)) return found;
  }
  return nullptr;
}

// Keras converts floating inputs to the type that a layer computes in.
void Autocast(GraphBuilder& b, DType to, KValue* value) {
  if (value->is_tensor() && b.Floating(value->tensor.value))
    value->tensor.value = b.Cast(value->tensor.value, to);
  for (KValue& item : value->items) Autocast(b, to, &item);
}

bool IsOwn(const Json& json) {
  const std::string module = Text(json, "module");
  return module.empty() || absl::StartsWith(module, "keras") ||
         absl::StartsWith(module, "tf_keras") || absl::StartsWith(module, "tensorflow");
}

absl::Status Unknown(const std::string& class_name, const Json& json) {
  if (class_name == "Lambda")
    return absl::UnimplementedError(
        absl::StrCat("a Lambda layer holds Python code, which floe does not run; ", kExport));
  if (!IsOwn(json) || absl::StrContains(class_name, ">"))
    return absl::UnimplementedError(absl::StrCat("a custom object of ",
                                                 Quoted(Text(json, "module")),
                                                 ", whose code is not in the file; ", kExport));
  return absl::UnimplementedError(absl::StrCat("this layer is not supported; ", kExport));
}

bool IsOperationModule(const std::string& module) {
  return absl::StartsWith(module, "keras.src.ops") || absl::StartsWith(module, "keras.ops");
}

std::string ScopeName(const std::string& name) {
  return absl::StrReplaceAll(name, {{":", "_"}, {"^", "_"}});
}

}  // namespace

std::vector<KTensor> Flatten(const KValue& value) {
  std::vector<KTensor> tensors;
  FlattenInto(value, &tensors);
  return tensors;
}

bool IsOperation(const Json& layer) {
  const std::string module = Text(layer, "module");
  if (!module.empty()) return IsOperationModule(module);
  // Old files do not say; operations have no such options.
  const Json& options = Member(layer, "config");
  return options.is_object() && !options.contains("trainable") && !options.contains("layers") &&
         Registry().count("ops." + Text(layer, "class_name")) != 0;
}

LayerRegistrar::LayerRegistrar(std::initializer_list<const char*> class_names, LayerRule rule,
                               Masks masks) {
  for (const char* name : class_names) Registry()[name] = {rule, masks};
}

std::vector<std::string> LayerNames() {
  std::vector<std::string> names;
  for (const auto& [name, registered] : Registry()) names.push_back(name);
  return names;
}

std::string PolicyName(const Json& policy, bool compute) {
  std::string name =
      policy.is_string() ? policy.get<std::string>() : Text(Member(policy, "config"), "name");
  if (absl::StartsWith(name, "mixed_")) name = compute ? name.substr(6) : "float32";
  return name;
}

KTensor LayerContext::Input(int i) {
  const std::vector<KTensor> inputs = Inputs();
  if (i < static_cast<int>(inputs.size())) return inputs[i];
  Fail(absl::StrCat("it is called with ", inputs.size(), " tensors, ", i + 1, " are needed"));
  return {};
}

std::vector<KTensor> LayerContext::Inputs() const {
  if (!call.args.empty()) return Flatten(call.args[0]);
  const auto named = call.kwargs.find("inputs");
  return named == call.kwargs.end() ? std::vector<KTensor>() : Flatten(named->second);
}

bool LayerContext::Flag(const std::string& name) const {
  const KValue& value = Arg(-1, name);
  return value.kind == KValue::Kind::kJson && *value.json == true;
}

const KValue& LayerContext::Arg(int position, const std::string& name) const {
  static const KValue none;
  if (position >= 0 && position < static_cast<int>(call.args.size())) return call.args[position];
  const auto found = call.kwargs.find(name);
  return found == call.kwargs.end() ? none : found->second;
}

ValueRef LayerContext::Mask() {
  const KValue& named = Arg(-1, "mask");
  if (named.is_tensor()) return named.tensor.value;
  const std::vector<KTensor> inputs = Inputs();
  return inputs.empty() ? ValueRef() : inputs[0].mask;
}

ValueRef LayerContext::Weight(const LayerWeights& weights, int index) {
  if (!b.ok()) return {};
  const absl::StatusOr<Tensor> tensor = weights.Get(index);
  if (!tensor.ok()) {
    b.Fail(Annotate(tensor.status(), absl::StrCat("variable ", index)));
    return {};
  }
  const ValueRef value = b.Const(*tensor);
  return b.Floating(value) ? b.Cast(value, compute_dtype) : value;
}

bool LayerContext::ChannelsLast() {
  const std::string format = config.String("data_format", "channels_last");
  if (format != "channels_last" && format != "channels_first")
    Fail(absl::StrCat("data_format is ", Quoted(format)));
  return format == "channels_last";
}

KValue LayerContext::CallLayer(const Json& json, const LayerWeights& weights, const Call& inner) {
  return keras::CallLayer(b, file, LayerObject{&json, weights}, inner);
}

ValueRef LayerContext::Activate(const std::string& option, ValueRef x) {
  return ApplyActivation(*this, config.At(option), x);
}

KValue CallLayer(GraphBuilder& b, const ModelFile& file, const LayerObject& layer,
                 const Call& call) {
  if (!b.ok()) return {};
  const Json& json = *layer.json;
  const Json& options = Member(json, "config");
  const std::string class_name = Text(json, "class_name");
  std::string name = Text(options, "name");
  if (name.empty()) name = Text(json, "name");
  const std::string where = absl::StrCat("layer ", Quoted(name), " (", Escaped(class_name), ")");
  if (WorkNote* const note = WorkNote::Current()) note->Do("importing", name, class_name);
  const bool operation = IsOperation(json);
  const auto found = Registry().find(operation ? "ops." + class_name : class_name);
  if (found == Registry().end() || !IsOwn(json)) {
    b.Fail(Annotate(Unknown(class_name, json), where));
    return {};
  }
  if (const absl::Status spent = SpendVisits(1); !spent.ok()) {
    b.Fail(spent);
    return {};
  }
  Call cast = call;
  LayerContext c{b, file, layer, cast, Config(options), found->first, name};
  const std::string computes = PolicyName(Member(options, "dtype"), /*compute=*/true);
  const absl::StatusOr<DType> dtype = DTypeFromName(computes);
  const bool floating = dtype.ok() && IsFloating(*dtype);
  if (absl::StrContains(computes, "_from_") || !Member(options, "quantization_config").is_null())
    b.Fail(absl::UnimplementedError(absl::StrCat("a quantised layer is not supported; ", kExport)));
  if (floating) c.compute_dtype = *dtype;
  const bool casts = !operation && class_name != "TFOpLambda" && class_name != "SlicingOpLambda";
  if (floating && casts && c.config.Bool("autocast", true)) {
    for (KValue& arg : cast.args) Autocast(b, *dtype, &arg);
  }
  const std::string outer = b.scope();
  b.set_scope(outer.empty() ? ScopeName(name) : absl::StrCat(outer, "/", ScopeName(name)));
  KValue out = found->second.rule(c);
  b.set_scope(outer);
  b.Fail(c.config.status());
  b.AnnotateError(where);
  if (!b.ok()) return {};
  if (found->second.masks == Masks::kPass) {
    KTensor* const first = FirstTensor(&out);
    const std::vector<KTensor> inputs = c.Inputs();
    if (first != nullptr && !first->has_mask() && !inputs.empty()) first->mask = c.Mask();
  }
  return out;
}

}  // namespace floe::keras
