// A layer's import rule: what it writes into the graph when it is called. One file a small family
// in model/import/keras/layers/; each registers itself, there is no list to edit.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/import/keras/builder.h"
#include "model/import/keras/json.h"
#include "model/import/keras/promotion.h"
#include "model/import/keras/read_log.h"
#include "model/import/keras/value.h"
#include "model/import/keras/way_out.h"
#include "model/import/keras/weights.h"

namespace floe::keras {

// What is the same for all layers of a file.
struct ModelFile {
  int version = 3;  // of Keras: 2 or 3
  // The text of a file among the model's assets; NOT_FOUND.
  std::function<absl::StatusOr<std::string>(const std::string& path)> asset;
  // Values whose masks a call has taken off: calls after it find none.
  mutable std::set<ValueRef> unmasked = {};
};

// One layer of the file, which may be called several times.
struct LayerObject {
  const Json* json = nullptr;  // class_name, config, ...
  LayerWeights weights;

  const Json& config() const { return Member(*json, "config"); }
};

// One call of a layer. Rules return what the layer gives; errors go to `b` or `config`, which the
// caller looks at. What a rule has not read of the configuration and the call is an error after it,
// so a rule reads every option and argument that may change its answer. Threading: one thread.
struct LayerContext {
  GraphBuilder& b;
  const ModelFile& file;
  const LayerObject& layer;
  const Call& call;
  ReadLog& log;
  Config config;
  std::string class_name, name;
  DType compute_dtype = DType::kFloat32;
  bool int8 = false;  // its variables are int8 and have scales, as Keras' quantize() leaves them

  void Fail(const std::string& message) { b.Fail(message); }
  // Refuses what Keras can do and floe cannot, with the way out.
  KValue Refuse(const std::string& what);
  bool keras2() const { return file.version < 3; }

  // All arguments, for another layer that is called with them.
  const Call& WholeCall();
  // Tensor number i of the first argument, which is a tensor or a list.
  KTensor Input(int i = 0);
  // All of them; arrays of numbers among them are constants.
  std::vector<KTensor> Inputs();
  ValueRef In(int i = 0) { return Input(i).value; }
  // The first argument as it is; None where there is none.
  const KValue& First() { return Arg(0, "inputs"); }
  // An argument by its position or name; None where it is left out.
  const KValue& Arg(int position, const std::string& name);
  // It as a tensor, also where it is a constant; not a value where it is left out.
  ValueRef ArgValue(int position, const std::string& name);
  bool Flag(const std::string& name);  // whether an argument of this name is true
  // The mask that the call names, or else that of the first input; not a value where there is none.
  ValueRef Mask();
  // The layer's own variable, in the type it computes in.
  ValueRef Weight(int index) { return Weight(layer.weights, index); }
  ValueRef Weight(const LayerWeights& weights, int index);
  // Fails where an option is there and is not `size`, which the layer's variables have.
  void CheckSize(const std::string& option, int64_t size, const std::string& what);
  // True: the last axis holds channels.
  bool ChannelsLast();
  // The values in the one type that Keras 3 computes in; as they are in Keras 2, which has no such
  // rule.
  void Promote(const std::vector<ValueRef*>& values);
  // The options of an object in the configuration, `what` in messages. Those that the rule does not
  // read are refused, as its own.
  Config Nested(const Json& object, const std::string& what);
  // Calls another layer that this one's configuration has.
  KValue CallLayer(const Json& json, const LayerWeights& weights, const Call& inner);
  // The function that an option names, applied.
  ValueRef Activate(const std::string& option, ValueRef x);
};

using LayerRule = KValue (*)(LayerContext&);

// What becomes of the mask where the rule says nothing of it.
enum class Masks {
  kPass,          // of the first input to the first output
  kPassInKeras3,  // the same; Keras 2 drops it
  kDrop,
};

// Registers at start-up (static objects of model/import/keras/layers/*.cc).
class LayerRegistrar {
 public:
  LayerRegistrar(std::initializer_list<const char*> class_names, LayerRule rule,
                 Masks masks = Masks::kDrop);
};

// Calls a layer; errors name it. What is not known is refused with the way out.
KValue CallLayer(GraphBuilder& b, const ModelFile& file, const LayerObject& layer,
                 const Call& call);

// Whether a layer is an operation of keras.ops, which Keras does not count among layers. Their
// rules are registered as "ops.NAME".
bool IsOperation(const Json& layer);

// By class name, for docs and tests.
std::vector<std::string> LayerNames();

// A serialised activation: a name, a function object, or a layer (which `layer` calls).
ValueRef ApplyActivation(LayerContext& c, const Json& activation, ValueRef x);
// By name alone; `keras2`: functions that changed keep their old meaning.
ValueRef ApplyActivation(GraphBuilder& b, const std::string& name, ValueRef x, bool keras2);

// Softmax along axes, which may count from the end.
ValueRef SoftmaxOver(GraphBuilder& b, ValueRef x, std::vector<int64_t> axes);

// The name of the type that a serialised policy computes in; "" where it says nothing.
std::string PolicyName(const Json& policy, bool compute);

}  // namespace floe::keras
