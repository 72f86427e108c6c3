#include "model/import/keras/layer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/budget.h"
#include "base/quoted.h"
#include "base/status.h"
#include "base/work_note.h"
#include "model/import/keras/constants.h"
#include "model/import/keras/quantized.h"

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

// The order of a value's items in Keras' tree.flatten: a dict's by their keys.
std::vector<size_t> FlatOrder(const KValue& value) {
  std::vector<size_t> order(value.items.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  if (value.kind == KValue::Kind::kDict)
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return value.keys[a] < value.keys[b]; });
  return order;
}

void FlattenInto(const KValue& value, std::vector<KTensor>* out) {
  if (value.is_tensor()) out->push_back(value.tensor);
  for (const size_t k : FlatOrder(value)) FlattenInto(value.items[k], out);
}

KTensor* FirstTensorIn(KValue* value) {
  if (value->is_tensor()) return &value->tensor;
  for (KValue& item : value->items) {
    if (KTensor* const found = FirstTensorIn(&item)) return found;
  }
  return nullptr;
}

// Keras converts floating inputs to the type that a layer computes in.
void Autocast(GraphBuilder& b, DType to, KValue* value) {
  if (value->is_tensor() && Floating(b, value->tensor.value))
    value->tensor.value = Cast(b, value->tensor.value, to);
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

namespace {

// What a layer's policy and options say of quantising it.
std::string ReadQuantizing(LayerContext& c, const Json& options, std::string computes) {
  const Quantized quantized = QuantizedOf(c.class_name, options);
  if (!quantized.any) return computes;
  c.int8 = quantized.int8;
  if (!c.int8)
    c.Refuse(absl::StrCat("a layer quantised to ",
                          quantized.mode.empty() ? "other numbers" : quantized.mode));
  return quantized.source;
}

}  // namespace

KValue LayerContext::Refuse(const std::string& what) {
  b.Fail(absl::UnimplementedError(absl::StrCat(what, " is not supported; ", kExport)));
  return {};
}

const Call& LayerContext::WholeCall() {
  log.NoteAll(call);
  return call;
}

KTensor LayerContext::Input(int i) {
  const std::vector<KTensor> inputs = Inputs();
  if (i < static_cast<int>(inputs.size())) return inputs[i];
  Fail(absl::StrCat("it is called with ", inputs.size(), " tensors, ", i + 1, " are needed"));
  return {};
}

namespace {

// A constant of the configuration. Mere numbers are what TensorFlow makes of them; floating ones
// are in the type that a layer computes in.
ValueRef ConstantValue(GraphBuilder& b, const Json& json, DType floating) {
  if (!b.ok()) return {};
  const absl::StatusOr<Constant> constant = ConstantOf(json);
  if (!constant.ok()) {
    b.Fail(constant.status());
    return {};
  }
  DType dtype = constant->dtype;
  if (constant->weak) dtype = IsFloating(dtype) ? DType::kFloat32 : DType::kInt32;
  if (IsFloating(dtype) && floating != DType::kInvalid) dtype = floating;
  return Cast(b, b.Const(constant->tensor), dtype);
}

void InputsOf(GraphBuilder& b, DType floating, const KValue& value, std::vector<KTensor>* out) {
  if (value.kind == KValue::Kind::kJson && !value.json->is_null())
    out->push_back({ConstantValue(b, *value.json, floating), {}});
  if (value.is_tensor()) out->push_back(value.tensor);
  for (const size_t k : FlatOrder(value)) InputsOf(b, floating, value.items[k], out);
}

}  // namespace

std::vector<KTensor> LayerContext::Inputs() {
  std::vector<KTensor> inputs;
  InputsOf(b, compute_dtype, First(), &inputs);
  return inputs;
}

bool LayerContext::Flag(const std::string& name) {
  const KValue& value = Arg(-1, name);
  return value.kind == KValue::Kind::kJson && *value.json == true;
}

const KValue& LayerContext::Arg(int position, const std::string& name) {
  static const KValue none;
  log.NoteArgument(name);
  if (position >= 0 && position < static_cast<int>(call.args.size())) {
    log.NoteArgument(position);
    return call.args[position];
  }
  const auto found = call.kwargs.find(name);
  return found == call.kwargs.end() ? none : found->second;
}

ValueRef LayerContext::ArgValue(int position, const std::string& name) {
  const KValue& value = Arg(position, name);
  if (value.is_tensor()) return value.tensor.value;
  if (value.kind == KValue::Kind::kJson && !HasOnlyNulls(*value.json))
    return ConstantValue(b, *value.json, DType::kInvalid);
  if (!value.items.empty()) Fail(absl::StrCat("argument ", Quoted(name), " is a list"));
  return {};
}

ValueRef LayerContext::Mask() {
  const ValueRef named = ArgValue(-1, "mask");
  if (named.node >= 0) return named;
  const std::vector<KTensor> inputs = Flatten(First());
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
  if (b.dtype(value) == DType::kInt8 && !int8) Refuse("a variable of int8");
  return Floating(b, value) ? Cast(b, value, compute_dtype) : value;
}

void LayerContext::CheckSize(const std::string& option, int64_t size, const std::string& what) {
  const int64_t wanted = config.Int(option, size);
  if (b.ok() && wanted != size)
    Fail(absl::StrCat("option ", Quoted(option), " is ", wanted, " and ", what, " has ", size));
}

void LayerContext::Promote(const std::vector<ValueRef*>& values) {
  if (keras2() || !b.ok()) return;
  std::vector<OperandType> types;
  types.reserve(values.size());
  for (const ValueRef* value : values) types.push_back({b.dtype(*value)});
  const DType dtype = ResultType(types);
  if (dtype == DType::kInvalid) Fail("values of types that have no common one");
  for (ValueRef* value : values) *value = b.ok() ? Cast(b, *value, dtype) : ValueRef();
}

Config LayerContext::Nested(const Json& object, const std::string& what) {
  if (object.is_object()) log.Watch(object, what);
  return Config(object, &log);
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
  ReadLog log(operation, file.version < 3);
  if (options.is_object()) log.Watch(options, "");
  LayerContext c{b, file, layer, cast, log, Config(options, &log), found->first, name};
  const std::string computes =
      ReadQuantizing(c, options, PolicyName(Member(options, "dtype"), /*compute=*/true));
  const absl::StatusOr<DType> dtype = DTypeFromName(computes);
  const bool floating = dtype.ok() && IsFloating(*dtype);
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
  if (b.ok()) {
    b.Fail(log.Check(cast));
  }
  b.AnnotateError(where);
  if (!b.ok()) return {};
  const Masks masks = found->second.masks;
  if (masks == Masks::kPass || (masks == Masks::kPassInKeras3 && !c.keras2())) {
    KTensor* const first = FirstTensorIn(&out);
    const std::vector<KTensor> inputs = Flatten(c.First());
    if (first != nullptr && !first->has_mask() && !inputs.empty()) first->mask = c.Mask();
  }
  return out;
}

}  // namespace floe::keras
