#include "model/import/keras/model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quoted.h"
#include "base/status.h"
#include "model/import/keras/call_order.h"
#include "model/import/keras/variables.h"

namespace floe::keras {
namespace {

// Tensor `tensor` of what call number `node` of a layer gives.
struct Reference {
  std::string layer;
  int64_t node = 0, tensor = 0;
};

// [name, node, tensor, ...], in the form that input_layers and Keras 2 write.
std::optional<Reference> ListReference(const Json& json) {
  if (!json.is_array() || json.size() < 3 || json.size() > 4 || !json[0].is_string()) return {};
  Reference ref{json[0].get<std::string>()};
  if (!ToInt(json[1], &ref.node) || !ToInt(json[2], &ref.tensor)) return {};
  return ref;
}

std::optional<Reference> TensorReference(const Json& json) {
  if (Text(json, "class_name") == "__keras_tensor__")
    return ListReference(Member(Member(json, "config"), "keras_history"));
  return ListReference(json);
}

bool IsConstantOfKeras2(const Json& json) {
  return json.is_array() && json.size() >= 3 && json[0] == "_CONSTANT_VALUE";
}

// What a call is given, in words that are the same for the same values.
void Describe(const KValue& value, std::string* words) {
  if (value.is_tensor()) {
    const KTensor& t = value.tensor;
    absl::StrAppend(words, "t", t.value.node, ":", t.value.output, "/", t.mask.node, ":",
                    t.mask.output, ",");
  } else if (value.kind == KValue::Kind::kJson) {
    absl::StrAppend(
        words, value.json->dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace),
        ",");
  }
  absl::StrAppend(words, "(");
  for (size_t k = 0; k < value.items.size(); ++k) {
    if (k < value.keys.size()) absl::StrAppend(words, Quoted(value.keys[k]), "=");
    Describe(value.items[k], words);
  }
  absl::StrAppend(words, ")");
}

std::string Describe(const Call& call) {
  std::string words;
  for (const KValue& arg : call.args) Describe(arg, &words);
  for (const auto& [name, value] : call.kwargs) {
    absl::StrAppend(&words, Quoted(name), "=");
    Describe(value, &words);
  }
  return words;
}

// A model takes what it is called with to the type of its input layer.
ValueRef AsInput(GraphBuilder& b, const Json& layer, ValueRef x) {
  const std::string name = PolicyName(Member(Member(layer, "config"), "dtype"), /*compute=*/false);
  const absl::StatusOr<DType> dtype = DTypeFromName(name);
  return b.ok() && dtype.ok() ? Cast(b, x, *dtype) : x;
}

// The graph of layers of a functional model.
class Functional {
 public:
  Functional(GraphBuilder& b, const ModelFile& file, const LayerObject& model)
      : b_(b), file_(file), config_(Member(*model.json, "config")), weights_(model.weights) {}

  // What the model gives for these values of its input layers, in flat order.
  KValue Run(const KValue& inputs) {
    if (!Index() || !BindInputs(inputs) || !CallAll()) return {};
    return Structure(Member(config_, "output_layers"));
  }

  // The names of the input layers in flat order, and those layers' objects.
  std::vector<std::string> InputNames() {
    std::vector<std::string> names;
    CollectNames(Member(config_, "input_layers"), &names);
    return names;
  }
  const Json& LayerNamed(const std::string& name) const {
    static const Json none;
    for (const Json& layer : Member(config_, "layers")) {
      if (NameOf(layer) == name) return layer;
    }
    return none;
  }

 private:
  struct Node {
    int layer = 0;
    const Json* call = nullptr;
    int missing = 0;           // how many calls it waits for
    std::vector<int> waiting;  // calls that wait for it
    std::vector<int> needs;    // calls that it waits for
    std::optional<std::vector<KTensor>> out;
    KValue value;
  };

  static std::string NameOf(const Json& layer) {
    const std::string name = Text(layer, "name");
    return name.empty() ? Text(Member(layer, "config"), "name") : name;
  }

  bool Fail(const std::string& message) {
    b_.Fail(message);
    return false;
  }

  // Input layers, in the order of Keras' tree.flatten.
  static void CollectNames(const Json& json, std::vector<std::string>* names) {
    if (const auto ref = ListReference(json); ref.has_value()) {
      names->push_back(ref->layer);
    } else if (json.is_array() || json.is_object()) {
      for (const Json& item : json) CollectNames(item, names);  // objects are sorted by key
    }
  }

  bool Index() {
    const Json& layers = Member(config_, "layers");
    if (!layers.is_array()) return Fail("the configuration has no list of layers");
    PlaceNames places;
    for (const Json& layer : layers) {
      const std::string name = NameOf(layer);
      if (!by_name_.emplace(name, static_cast<int>(objects_.size())).second)
        return Fail(absl::StrCat("two layers are called ", Quoted(name)));
      LayerObject object{&layer, {}};
      if (!IsOperation(layer))
        object.weights = weights_.OfLayer(places.Next(Text(layer, "class_name")));
      objects_.push_back(std::move(object));
      first_.push_back(static_cast<int>(nodes_.size()));
      const Json& calls = Member(layer, "inbound_nodes");
      if (Text(layer, "class_name") == "InputLayer" || !calls.is_array() || calls.empty()) {
        nodes_.push_back({.layer = static_cast<int>(objects_.size()) - 1});
        continue;
      }
      for (const Json& call : calls)
        nodes_.push_back({.layer = static_cast<int>(objects_.size()) - 1, .call = &call});
    }
    first_.push_back(static_cast<int>(nodes_.size()));
    return true;
  }

  // A model is called once by itself, which is not in the file. In Keras 2 all numbers count that
  // call, in Keras 3 those of outputs do, where the model is no Sequential.
  std::optional<int> Find(const Reference& ref, bool output = false) const {
    const auto found = by_name_.find(ref.layer);
    if (found == by_name_.end() || ref.node < 0 || ref.node > INT32_MAX) return {};
    const Json& layer = *objects_[found->second].json;
    int64_t number = ref.node;
    if (file_.version < 3 && IsModel(layer) && number > 0) --number;
    if (file_.version >= 3 && IsModel(layer) && Text(layer, "class_name") != "Sequential" && output)
      --number;
    const int64_t node = first_[found->second] + number;
    if (number < 0 || node >= first_[found->second + 1]) return {};
    return static_cast<int>(node);
  }

  bool BindInputs(const KValue& inputs) {
    const std::vector<std::string> names = InputNames();
    std::vector<KTensor> values = Flatten(inputs);
    if (inputs.kind == KValue::Kind::kDict && !Member(config_, "input_layers").is_object()) {
      values.clear();  // a dict for a list: by the names of the input layers
      for (const std::string& name : names) {
        const auto key = std::find(inputs.keys.begin(), inputs.keys.end(), name);
        if (key == inputs.keys.end()) return Fail(absl::StrCat("no input ", Quoted(name)));
        const KValue& item = inputs.items[key - inputs.keys.begin()];
        if (item.is_tensor()) values.push_back(item.tensor);
      }
    }
    if (values.size() != names.size())
      return Fail(
          absl::StrCat("it has ", names.size(), " inputs and is called with ", values.size()));
    for (size_t k = 0; k < names.size(); ++k) {
      const std::optional<int> node = Find({names[k]});
      if (!node.has_value()) return Fail(absl::StrCat("no input layer ", Quoted(names[k])));
      values[k].value = AsInput(b_, *objects_[nodes_[*node].layer].json, values[k].value);
      nodes_[*node].out = std::vector<KTensor>{values[k]};
      nodes_[*node].value = values[k];
    }
    return true;
  }

  // Every call that `json` takes tensors of.
  void Depend(const Json& json, int user, std::set<int>* seen) {
    if (const auto ref = TensorReference(json); ref.has_value()) {
      if (const auto node = Find(*ref); node.has_value() && seen->insert(*node).second) {
        nodes_[*node].waiting.push_back(user);
        nodes_[user].needs.push_back(*node);
        ++nodes_[user].missing;
      }
    }
    if (json.is_array() || json.is_object()) {
      for (const Json& item : json) Depend(item, user, seen);
    }
  }

  // The calls that the outputs need, as Keras runs them.
  std::vector<int> NeededCalls() const {
    std::vector<int> outputs;
    AddOutputs(Member(config_, "output_layers"), &outputs);
    std::vector<OrderedCall> calls;
    for (const Node& node : nodes_) calls.push_back({node.layer, node.needs});
    return CallOrder(calls, outputs);
  }

  void AddOutputs(const Json& json, std::vector<int>* calls) const {
    if (const auto ref = ListReference(json); ref.has_value()) {
      if (const auto node = Find(*ref, /*output=*/true)) calls->push_back(*node);
    } else if (json.is_array() || json.is_object()) {
      for (const Json& item : json) AddOutputs(item, calls);
    }
  }

  // A call that no output needs is left out: among many, each of a model that makes many itself,
  // there may be more of them than of all others.
  bool CallAll() {
    for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) {
      std::set<int> seen;
      if (nodes_[n].call != nullptr) Depend(*nodes_[n].call, n, &seen);
    }
    const std::vector<int> order = NeededCalls();
    std::vector<int> place(nodes_.size(), -1);
    std::set<int> ready;  // places in the order
    for (size_t k = 0; k < order.size(); ++k) {
      place[order[k]] = static_cast<int>(k);
      if (nodes_[order[k]].missing == 0) ready.insert(static_cast<int>(k));
    }
    size_t left = order.size();
    for (; !ready.empty() && b_.ok(); --left) {
      const int n = order[*ready.begin()];
      ready.erase(ready.begin());
      if (nodes_[n].call != nullptr && !nodes_[n].out.has_value()) CallOne(&nodes_[n]);
      for (const int user : nodes_[n].waiting) {
        if (--nodes_[user].missing == 0 && place[user] >= 0) ready.insert(place[user]);
      }
    }
    if (b_.ok() && left != 0) return Fail("its layers take each other's outputs in a circle");
    return b_.ok();
  }

  // The same call twice is one.
  void CallOne(Node* node) {
    const Call call = CallOf(*node->call);
    if (!b_.ok()) return;
    const bool several = first_[node->layer + 1] - first_[node->layer] > 1;
    const std::pair key(node->layer, several ? Describe(call) : "");
    const auto done = several ? done_.find(key) : done_.end();
    node->value =
        done != done_.end() ? done->second : CallLayer(b_, file_, objects_[node->layer], call);
    if (several) done_.emplace(key, node->value);
    node->out = Flatten(node->value);
  }

  Call CallOf(const Json& json) {
    Call call;
    if (const Json& args = Member(json, "args"); args.is_array()) {
      for (const Json& arg : args) call.args.push_back(Resolve(arg));
      for (const auto& [name, value] : Member(json, "kwargs").items())
        call.kwargs[name] = Resolve(value);
      return call;
    }
    const Json* first = &json;  // the reference that has the other arguments
    while (!ListReference(*first) && !IsConstantOfKeras2(*first) &&
           (first->is_array() || first->is_object()) && !first->empty())
      first = &*first->begin();
    const bool one = json.is_array() && json.size() == 1 && !IsConstantOfKeras2(json);
    call.args.push_back(Resolve(one ? json[0] : json));
    if (first->is_array() && first->size() == 4 && (*first)[3].is_object()) {
      for (const auto& [name, value] : (*first)[3].items()) call.kwargs[name] = Resolve(value);
    }
    return call;
  }

  static bool HasTensors(const Json& json) {
    if (TensorReference(json).has_value() || IsConstantOfKeras2(json)) return true;
    return (json.is_array() || json.is_object()) &&
           std::any_of(json.begin(), json.end(), [](const Json& item) { return HasTensors(item); });
  }

  KValue Resolve(const Json& json) {
    if (json.is_null()) return {};
    if (IsConstantOfKeras2(json)) return Resolve(json[2]);
    if (const auto ref = TensorReference(json);
        ref.has_value() && (by_name_.count(ref->layer) != 0))
      return Referred(*ref);
    if (!HasTensors(json)) return json;
    if (const Json* items = Items(json)) {
      KValue list{std::vector<KValue>()};
      for (const Json& item : *items) list.items.push_back(Resolve(item));
      return list;
    }
    if (!json.is_object() || json.contains("class_name")) return json;
    KValue dict;
    dict.kind = KValue::Kind::kDict;
    for (const auto& [key, value] : json.items()) {
      dict.keys.push_back(key);
      dict.items.push_back(Resolve(value));
    }
    return dict;
  }

  KValue Referred(const Reference& ref, bool output = false) {
    const std::optional<int> node = Find(ref, output);
#ifdef FLOE_FUZZ_PLANTED_BUG  // a check left out, for scripts/fuzz --self-test
    if (node.has_value() && nodes_[*node].out.has_value()) return (*nodes_[*node].out)[ref.tensor];
#endif
    const bool there = node.has_value() && nodes_[*node].out.has_value() && ref.tensor >= 0 &&
                       ref.tensor < static_cast<int64_t>(nodes_[*node].out->size());
    if (there) {
      KTensor tensor = (*nodes_[*node].out)[ref.tensor];
      if (file_.unmasked.count(tensor.value) != 0) tensor.mask = {};
      return tensor;
    }
    Fail(absl::StrCat("a layer takes output ", ref.tensor, " of call ", ref.node, " of layer ",
                      Quoted(ref.layer), ", which there is not"));
    return {};
  }

  // The outputs, in the nesting that the configuration has them in.
  KValue Structure(const Json& json) {
    if (const auto ref = ListReference(json); ref.has_value())
      return Referred(*ref, /*output=*/true);
    KValue value{std::vector<KValue>()};
    if (json.is_object()) {
      value.kind = KValue::Kind::kDict;
      for (const auto& [key, item] : json.items()) {
        value.keys.push_back(key);
        value.items.push_back(Structure(item));
      }
    } else if (json.is_array()) {
      for (const Json& item : json) value.items.push_back(Structure(item));
      // Keras 2 writes one output as a list of it.
      if (value.items.size() == 1 && file_.version < 3) return value.items[0];
    } else {
      Fail("the configuration does not say what the outputs are");
    }
    return value;
  }

  GraphBuilder& b_;
  const ModelFile& file_;
  const Json& config_;
  const LayerWeights weights_;
  std::vector<LayerObject> objects_;
  std::map<std::string, int> by_name_;
  std::vector<int> first_;  // a layer's first call; one more at the end
  std::vector<Node> nodes_;
  std::map<std::pair<int, std::string>, KValue> done_;  // what a layer gave for a call
};

// The layers of a Sequential, without its input layer.
std::vector<LayerObject> SequentialLayers(const LayerObject& model) {
  std::vector<LayerObject> objects;
  PlaceNames places;
  for (const Json& layer : LayersOf(*model.json)) {
    const std::string class_name = Text(layer, "class_name");
    if (class_name == "InputLayer") continue;
    objects.push_back({&layer, model.weights.OfLayer(places.Next(class_name))});
  }
  return objects;
}

KValue RunSequential(GraphBuilder& b, const ModelFile& file, const LayerObject& model,
                     KValue value) {
  const Json& layers = LayersOf(*model.json);
  if (value.is_tensor() && !layers.empty() && Text(layers[0], "class_name") == "InputLayer")
    value.tensor.value = AsInput(b, layers[0], value.tensor.value);
  for (const LayerObject& layer : SequentialLayers(model)) {
    Call call;
    call.args.push_back(std::move(value));
    value = CallLayer(b, file, layer, call);
  }
  return value;
}

// The inputs with the masks that the call gives them.
KValue Masked(KValue inputs, const KValue& masks) {
  if (inputs.is_tensor() && masks.is_tensor()) inputs.tensor.mask = masks.tensor.value;
  for (size_t k = 0; k < std::min(inputs.items.size(), masks.items.size()); ++k)
    inputs.items[k] = Masked(std::move(inputs.items[k]), masks.items[k]);
  return inputs;
}

KValue ModelLayer(LayerContext& c) {
  const KValue inputs = Masked(c.First(), c.Arg(-1, "mask"));
  c.config.Ignore({"layers", "input_layers", "output_layers"});  // which are read there
  if (inputs.is_none()) c.Fail("it is called without inputs");
  if (!c.b.ok()) return {};
  if (c.class_name == "Sequential") return RunSequential(c.b, c.file, c.layer, inputs);
  return Functional(c.b, c.file, c.layer).Run(inputs);
}

const LayerRegistrar kModels({"Functional", "Model", "Sequential"}, ModelLayer);

// ---- the whole model ----

TensorType InputType(GraphBuilder& b, const Json& shape, const std::string& dtype) {
  TensorType type;
  const absl::StatusOr<DType> known = DTypeFromName(dtype.empty() ? "float32" : dtype);
  if (known.ok()) type.dtype = *known;
  if (!known.ok()) b.Fail(absl::StrCat("an input of type ", Quoted(dtype)));
  const Json* const dims = Items(shape);
  if (dims == nullptr) return type;
  type.shape = SymShape();
  for (const Json& dim : *dims) {
    int64_t size = -1;
    if (!dim.is_null() && (!ToInt(dim, &size) || size < 0 || size > INT32_MAX))
      b.Fail(absl::StrCat("an input of shape ", Shown(shape)));
    type.shape.push_back(dim.is_null() ? Dim::Unknown() : Dim(size));
  }
  return type;
}

KTensor AddInput(GraphBuilder& b, const Json& options, const std::string& name) {
  for (const char* const kind : {"sparse", "ragged"}) {
    if (Member(options, kind) == true)
      b.Fail(absl::StrCat("input ", Quoted(name), " is ", kind,
                          "; floe takes dense inputs of Keras models only"));
  }
  const Json* shape = &Member(options, "batch_shape");
  if (shape->is_null()) shape = &Member(options, "batch_input_shape");
  const Json& dtype = Member(options, "dtype");
  const TensorType type = InputType(b, *shape, PolicyName(dtype, /*compute=*/false));
  if (!type.shape.rank_known())
    b.Fail(absl::StrCat("the shape of input ", Quoted(name), " is not in the configuration"));
  return b.ok() ? KTensor{Input(b, name, type), {}} : KTensor();
}

// The first layer's own shape, as Keras 2 and models built late have it.
KTensor SequentialInput(GraphBuilder& b, const Json& model, std::string* name) {
  const Json &config = Member(model, "config"), &layers = LayersOf(model);
  if (layers.empty()) {
    b.Fail("a Sequential without layers");
    return {};
  }
  const Json& first = layers[0];
  const Json& options = Member(first, "config");
  if (Text(first, "class_name") == "InputLayer") {
    *name = Text(options, "name");
    return AddInput(b, options, *name);
  }
  *name = absl::StrCat(Text(options, "name"), "_input");
  if (options.contains("batch_input_shape")) return AddInput(b, options, *name);
  if (IsModel(first)) {
    std::string inner;
    if (Text(first, "class_name") == "Sequential") return SequentialInput(b, first, &inner);
    static const ModelFile no_file;
    Functional functional(b, no_file, LayerObject{&first, {}});
    const std::vector<std::string> names = functional.InputNames();
    if (names.size() == 1)
      return AddInput(b, Member(functional.LayerNamed(names[0]), "config"), *name);
  }
  const Json* shape = &Member(config, "build_input_shape");
  if (shape->is_null()) shape = &Member(Member(model, "build_config"), "input_shape");
  if (shape->is_null()) shape = &Member(Member(first, "build_config"), "input_shape");
  const Json built{{"batch_shape", *shape}, {"dtype", Member(options, "dtype")}};
  *name = "keras_tensor";
  return AddInput(b, built, *name);
}

void NameOutputs(const KValue& out, const std::vector<std::string>& names, ModelEnds* ends) {
  const std::vector<KTensor> flat = Flatten(out);
  std::vector<std::string> keys = names;
  if (out.kind == KValue::Kind::kDict && out.keys.size() == flat.size()) {
    keys = out.keys;
    std::sort(keys.begin(), keys.end());
  }
  for (size_t k = 0; k < flat.size(); ++k) {
    std::string key = k < keys.size() ? keys[k] : absl::StrCat("output_", k);
    const auto taken = [&](const std::string& name) {
      return std::any_of(ends->outputs.begin(), ends->outputs.end(),
                         [&](const auto& other) { return other.first == name; });
    };
    const std::string base = key;
    for (int n = 1; taken(key); ++n) key = absl::StrCat(base, "_", n);
    ends->outputs.emplace_back(std::move(key), flat[k].value);
  }
}

// Keras 2 calls outputs as the layers that give them.
std::vector<std::string> OutputLayerNames(const Json& json) {
  std::vector<std::string> names;
  if (const auto ref = ListReference(json); ref.has_value()) return {ref->layer};
  if (json.is_array() || json.is_object()) {
    for (const Json& item : json) {
      for (std::string& name : OutputLayerNames(item)) names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace

ModelEnds BuildModel(GraphBuilder& b, const ModelFile& file, const LayerObject& model) {
  ModelEnds ends;
  const std::string class_name = Text(*model.json, "class_name");
  if (!IsModel(*model.json)) {
    // A subclass of Model: code that is not in the file.
    Call none;
    CallLayer(b, file, model, none);
    b.Fail(absl::StrCat("a model of class ", Quoted(class_name),
                        " is not supported; export it with model.export()"));
    return ends;
  }
  KValue out;
  std::vector<std::string> names;
  if (class_name == "Sequential") {
    std::string name;
    const KTensor input = SequentialInput(b, *model.json, &name);
    ends.inputs.emplace_back(name, input.value);
    out = RunSequential(b, file, model, input);
    const std::vector<LayerObject> layers = SequentialLayers(model);
    if (file.version < 3 && !layers.empty())
      names = {Text(Member(*layers.back().json, "config"), "name")};
  } else {
    Functional functional(b, file, model);
    KValue inputs{std::vector<KValue>()};
    for (const std::string& name : functional.InputNames()) {
      const Json& layer = functional.LayerNamed(name);
      inputs.items.emplace_back(AddInput(b, Member(layer, "config"), name));
      ends.inputs.emplace_back(name, inputs.items.back().tensor.value);
    }
    out = functional.Run(inputs);
    if (file.version < 3)
      names = OutputLayerNames(Member(Member(*model.json, "config"), "output_layers"));
  }
  if (b.ok()) NameOutputs(out, names, &ends);
  if (b.ok() && ends.outputs.empty()) b.Fail("the model has no outputs");
  // Tensors of these names, which tools show.
  for (auto& [key, value] : ends.outputs) value = Named(b, key, value);
  return ends;
}

}  // namespace floe::keras
