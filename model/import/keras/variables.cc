#include "model/import/keras/variables.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/import/keras/layer.h"
#include "model/import/keras/quantized.h"

namespace floe::keras {
namespace {

using Dims = std::optional<std::vector<int64_t>>;

Dims Sizes(std::initializer_list<int64_t> sizes) { return std::vector<int64_t>(sizes); }
const Dims kAny;  // of any shape

// The variables that a layer itself makes.
using OwnVariables = std::vector<Variable>;

Variable Trained(Dims dims) { return {.dims = std::move(dims)}; }
Variable Fixed(Dims dims) { return {.trained = false, .dims = std::move(dims)}; }

// A kernel that ends with `units`, and its bias.
OwnVariables WithBias(Config& c, Dims kernel, Dims bias) {
  OwnVariables own{Trained(std::move(kernel))};
  if (c.Bool("use_bias", true)) own.push_back(Trained(std::move(bias)));
  return own;
}

int SpatialOfClass(const std::string& class_name) {
  const size_t digit = class_name.find_first_of("123");
  return digit == std::string::npos ? 1 : class_name[digit] - '0';
}

// [kernel_size..., a, b], of 1 x 1 without the option.
Dims Kernel(Config& c, const std::string& class_name, bool ones, int64_t a, int64_t b) {
  const int spatial = SpatialOfClass(class_name);
  std::vector<int64_t> dims(spatial, 1);
  if (!ones) dims = c.Ints("kernel_size", spatial, std::move(dims));
  dims.insert(dims.end(), {a, b});
  return dims;
}

// Of a layer that is quantised to int8: its bias, which alone is trained, its kernel and the scales
// of that.
OwnVariables OfInt8(Config& c, const std::string& class_name) {
  OwnVariables own;
  const bool dense = class_name == "Dense" && c.Bool("use_bias", true);
  if (dense || (class_name == "EinsumDense" && c.Has("bias_axes"))) own.push_back(Trained(kAny));
  own.insert(own.end(), {Fixed(kAny), Fixed(kAny)});
  return own;
}

OwnVariables OfDense(Config& c, const std::string&) {
  const int64_t units = c.Int("units", -1);
  return WithBias(c, Sizes({-1, units}), Sizes({units}));
}

OwnVariables OfEinsumDense(Config& c, const std::string&) {
  OwnVariables own{Trained(kAny)};
  if (c.Has("bias_axes")) own.push_back(Trained(kAny));
  return own;
}

OwnVariables OfEmbedding(Config& c, const std::string& class_name) {
  const int64_t ids = c.Int("input_dim", -1), size = c.Int("output_dim", -1);
  OwnVariables own{Trained(Sizes({ids, size}))};
  if (class_name == "ReversibleEmbedding" && !c.Bool("tie_weights", true))
    own.push_back(Trained(Sizes({size, ids})));
  return own;
}

OwnVariables OfConv(Config& c, const std::string& class_name) {
  const int64_t filters = c.Int("filters", -1);
  return WithBias(c, Kernel(c, class_name, false, -1, filters), Sizes({filters}));
}

OwnVariables OfConvTranspose(Config& c, const std::string& class_name) {
  const int64_t filters = c.Int("filters", -1);
  return WithBias(c, Kernel(c, class_name, false, filters, -1), Sizes({filters}));
}

OwnVariables OfDepthwiseConv(Config& c, const std::string& class_name) {
  return WithBias(c, Kernel(c, class_name, false, -1, c.Int("depth_multiplier", 1)), Sizes({-1}));
}

OwnVariables OfSeparableConv(Config& c, const std::string& class_name) {
  const int64_t filters = c.Int("filters", -1);
  OwnVariables own = WithBias(c, Kernel(c, class_name, true, -1, filters), Sizes({filters}));
  own.insert(own.begin(), Trained(Kernel(c, class_name, false, -1, c.Int("depth_multiplier", 1))));
  return own;
}

OwnVariables ScaleAndCenter(Config& c, const std::string& class_name) {
  const bool rms = class_name == "LayerNormalization" && c.Bool("rms_scaling", false);
  OwnVariables own;
  if (rms || c.Bool("scale", true)) own.push_back(Trained(kAny));
  if (!rms && c.Bool("center", true)) own.push_back(Trained(kAny));
  return own;
}

OwnVariables OfBatchNormalization(Config& c, const std::string& class_name) {
  OwnVariables own = ScaleAndCenter(c, class_name);
  for (Variable& variable : own) variable.dims = Sizes({-1});
  own.insert(own.end(), {Fixed(Sizes({-1})), Fixed(Sizes({-1}))});
  return own;
}

OwnVariables OfNormalization(Config& c, const std::string&) {
  if (c.Has("mean")) return {};
  return {Fixed(kAny), Fixed(kAny), Fixed(Sizes({}))};  // and a count
}

OwnVariables OfAttention(Config& c, const std::string& class_name) {
  const bool additive = class_name == "AdditiveAttention";
  OwnVariables own;
  if (c.Bool("use_scale", additive)) own.push_back(Trained(kAny));
  if (!additive && c.String("score_mode", "dot") == "concat") own.push_back(Trained(kAny));
  return own;
}

OwnVariables Spectrogram(Config& c, const std::string&) {
  const std::string mode = c.String("mode", "log");
  OwnVariables own{Trained(kAny)};
  if (mode != "real" && mode != "imag") own.push_back(Trained(kAny));
  return own;
}

OwnVariables One(Config&, const std::string&) { return {Trained(kAny)}; }

OwnVariables ConvCell(Config& c, const std::string&) {
  OwnVariables own = WithBias(c, kAny, kAny);
  own.insert(own.begin() + 1, Trained(kAny));
  return own;
}

OwnVariables OfCell(Config& c, const std::string& class_name) {
  const int64_t units = c.Int("units", -1);
  if (units < 0 || units > INT32_MAX) return ConvCell(c, class_name);
  const int64_t gates = absl::StartsWith(class_name, "LSTM")  ? 4 * units
                        : absl::StartsWith(class_name, "GRU") ? 3 * units
                                                              : units;
  const bool two = absl::StartsWith(class_name, "GRU") && c.Bool("reset_after", true);
  OwnVariables own = WithBias(c, Sizes({-1, gates}), two ? Sizes({2, gates}) : Sizes({gates}));
  own.insert(own.begin() + 1, Trained(Sizes({units, gates})));
  return own;
}

using OwnRule = OwnVariables (*)(Config&, const std::string& class_name);

OwnRule OwnRuleOf(const std::string& class_name) {
  static const std::map<std::string, OwnRule> rules = {
      {"Dense", OfDense},
      {"EinsumDense", OfEinsumDense},
      {"Embedding", OfEmbedding},
      {"ReversibleEmbedding", OfEmbedding},
      {"Conv1D", OfConv},
      {"Conv2D", OfConv},
      {"Conv3D", OfConv},
      {"Convolution1D", OfConv},
      {"Convolution2D", OfConv},
      {"Convolution3D", OfConv},
      {"DepthwiseConv1D", OfDepthwiseConv},
      {"DepthwiseConv2D", OfDepthwiseConv},
      {"SeparableConv1D", OfSeparableConv},
      {"SeparableConv2D", OfSeparableConv},
      {"SeparableConvolution1D", OfSeparableConv},
      {"SeparableConvolution2D", OfSeparableConv},
      {"Conv1DTranspose", OfConvTranspose},
      {"Conv2DTranspose", OfConvTranspose},
      {"Conv3DTranspose", OfConvTranspose},
      {"Convolution2DTranspose", OfConvTranspose},
      {"Convolution3DTranspose", OfConvTranspose},
      {"BatchNormalization", OfBatchNormalization},
      {"BatchNormalizationV1", OfBatchNormalization},
      {"BatchNormalizationV2", OfBatchNormalization},
      {"SyncBatchNormalization", OfBatchNormalization},
      {"LayerNormalization", ScaleAndCenter},
      {"GroupNormalization", ScaleAndCenter},
      {"RMSNormalization", One},
      {"LayerScale", One},
      {"PReLU", One},
      {"Normalization", OfNormalization},
      {"Attention", OfAttention},
      {"AdditiveAttention", OfAttention},
      {"STFTSpectrogram", Spectrogram},
      {"LSTMCell", OfCell},
      {"GRUCell", OfCell},
      {"SimpleRNNCell", OfCell},
  };
  const auto found = rules.find(class_name);
  return found == rules.end() ? nullptr : found->second;
}

bool IsRecurrent(const std::string& class_name) {
  return class_name == "LSTM" || class_name == "GRU" || class_name == "SimpleRNN";
}

// What may be turned round or be a cell: with no more than these, no layer is looked at twice for
// each layer around it.
bool IsTurnable(const std::string& class_name) {
  return IsRecurrent(class_name) || class_name == "RNN" || absl::StartsWith(class_name, "ConvLSTM");
}
bool IsCell(const std::string& class_name) {
  return absl::EndsWith(class_name, "Cell") || class_name == "StackedRNNCells";
}

bool IsKnown(const std::string& class_name) {
  static const std::vector<std::string> known = LayerNames();
  return std::binary_search(known.begin(), known.end(), class_name) || IsCell(class_name) ||
         class_name == "InputLayer";
}

// Walks a layer and all layers in it.
class Collector {
 public:
  // `root`: what the walk begins with.
  Collector(Writer writer, const Json& root, LayerVariables* out)
      : writer_(writer), root_(IsTrained(root)), out_(*out) {}

  // `around`: whether all layers around it are trained. Keras 3 asks each variable whether it is
  // trained, which the layer that owns it knows, and besides only the root.
  void Layer(const Json& layer, const std::string& path, bool around) {
    const std::string class_name = Text(layer, "class_name");
    const Json& config = Member(layer, "config");
    const bool trained = (writer_ == Writer::kKeras3 ? root_ : around) && IsTrained(layer);
    if (IsModel(layer)) return Model(layer, path, trained);
    const Quantized quantized = QuantizedOf(class_name, config);
    const bool known = IsKnown(class_name) && (!quantized.any || quantized.int8);
    if (!known) return out_.unknown.push_back(class_name);
    Config c(config);
    if (const OwnRule rule = quantized.int8 ? OfInt8 : OwnRuleOf(class_name))
      Add(rule(c, class_name), path, trained);
    Parts(layer, class_name, path, trained);
  }

  void Model(const Json& model, const std::string& path, bool trained) {
    const bool moves = writer_ == Writer::kKeras213 || writer_ == Writer::kKeras214;
    const std::string folder = absl::StrCat(path, path.empty() ? "" : "/");
    PlaceNames once, twice;
    for (const Json& layer : LayersOf(model)) {
      const std::string class_name = Text(layer, "class_name");
      const bool input = class_name == "InputLayer" && Text(model, "class_name") == "Sequential";
      if (input || IsOperation(layer)) continue;
      const std::string own = once.Next(class_name), second = twice.Next(class_name);
      std::string there = absl::StrCat(folder, "layers/", own);
      if (moves) {
        const std::string moved =
            absl::StrCat(folder, kOldLayers, "/", writer_ == Writer::kKeras213 ? second : own);
        out_.moved[there] = moved;
        there = moved;
      }
      const size_t before = out_.all.size();
      Layer(layer, there, trained);
      if (out_.all.size() > before) twice.Skip(class_name);
    }
  }

 private:
  void Add(OwnVariables own, const std::string& path, bool trained) {
    int index = 0;
    for (Variable& variable : own) {
      variable.path = path;
      variable.index = index++;
      variable.trained = variable.trained && trained;
      out_.all.push_back(std::move(variable));
    }
  }

  // The layers that a layer has as attributes.
  void Parts(const Json& layer, const std::string& class_name, const std::string& path,
             bool trained) {
    const Json& config = Member(layer, "config");
    Config c(config);
    const auto part = [&](const std::string& name) { return absl::StrCat(path, "/", name); };
    if (IsRecurrent(class_name)) {
      Add(OfCell(c, class_name), part("cell"), trained);
    } else if (absl::StartsWith(class_name, "ConvLSTM")) {
      Add(ConvCell(c, class_name), part("cell"), trained);
    } else if (class_name == "RNN") {
      const Json& cell = Member(config, "cell");
      if (IsCell(Text(cell, "class_name"))) Layer(cell, part("cell"), trained);
    } else if (class_name == "StackedRNNCells") {
      Row(Member(config, "cells"), part("cells/"), trained);
    } else if (class_name == "Pipeline") {
      if (const Json* const layers = Items(Member(config, "layers")))
        Row(*layers, part("layers/"), trained);
    } else if (class_name == "Bidirectional") {
      const Json &forward = Member(config, "layer"), &own = Member(config, "backward_layer");
      const Json& back = own.is_null() ? forward : own;
      if (IsTurnable(Text(forward, "class_name"))) Layer(forward, part("forward_layer"), trained);
      if (IsTurnable(Text(back, "class_name"))) Layer(back, part("backward_layer"), trained);
    } else if (class_name == "TimeDistributed" || class_name == "Wrapper") {
      Layer(Member(config, "layer"), part("layer"), trained);
    } else if (class_name == "SpectralNormalization") {
      Add({Fixed(kAny)}, path, trained);
      Layer(Member(config, "layer"), part("layer"), trained);
    } else if (absl::EndsWith(class_name, "QueryAttention") || class_name == "MultiHeadAttention") {
      for (const char* const name :
           {"query_dense", "key_dense", "gate_dense", "value_dense", "output_dense"}) {
        if (name == std::string("gate_dense") && !c.Bool("use_gate", false)) continue;
        Add(WithBias(c, kAny, kAny), part(name), trained);
      }
    }
  }

  void Row(const Json& layers, const std::string& folder, bool trained) {
    PlaceNames names;
    for (const Json& layer : layers)
      Layer(layer, folder + names.Next(Text(layer, "class_name")), trained);
  }

  static bool IsTrained(const Json& layer) {
    return Member(Member(layer, "config"), "trainable") != false;
  }

  const Writer writer_;
  const bool root_;
  LayerVariables& out_;
};

bool Upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool Lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }

}  // namespace

const Json& LayersOf(const Json& model) {
  static const Json none;
  const Json& config = Member(model, "config");
  const Json& layers = config.is_array() ? config : Member(config, "layers");
  return layers.is_array() ? layers : none;
}

bool IsModel(const Json& layer) {
  const std::string name = Text(layer, "class_name");
  return name == "Functional" || name == "Model" || name == "Sequential";
}

LayerVariables VariablesOf(const Json& layer, const std::string& path, Writer writer) {
  LayerVariables variables;
  Collector collector(writer, layer, &variables);
  if (path.empty() && IsModel(layer))
    collector.Model(layer, path, true);
  else
    collector.Layer(layer, path, true);
  return variables;
}

std::vector<NamedVariables> VariablesOfLayers(const Json& model, Writer writer) {
  std::vector<NamedVariables> layers;
  PlaceNames names;
  for (const Json& layer : LayersOf(model)) {
    const std::string class_name = Text(layer, "class_name");
    const bool input = class_name == "InputLayer" && Text(model, "class_name") == "Sequential";
    if (input || IsOperation(layer)) continue;
    std::string name = Text(layer, "name");
    if (name.empty()) name = Text(Member(layer, "config"), "name");
    layers.push_back({std::move(name),
                      VariablesOf(layer, absl::StrCat("layers/", names.Next(class_name)), writer)});
  }
  return layers;
}

std::string PlaceNames::Next(const std::string& class_name) {
  const std::string snake = SnakeCase(class_name);
  const int number = numbers_[snake]++;
  return number == 0 ? snake : absl::StrCat(snake, "_", number);
}

std::string SnakeCase(const std::string& exported_name) {
  // The one layer whose class is not called as it is exported.
  const std::string class_name =
      exported_name == "GroupQueryAttention" ? "GroupedQueryAttention" : exported_name;
  std::string words;  // a word that begins with a capital and goes on in small letters
  for (size_t i = 0; i < class_name.size();) {
    if (i + 2 < class_name.size() && Upper(class_name[i + 1]) && Lower(class_name[i + 2])) {
      words += {class_name[i], '_', class_name[i + 1]};
      for (i += 2; i < class_name.size() && Lower(class_name[i]); ++i) words += class_name[i];
    } else {
      words += class_name[i++];
    }
  }
  std::string snake;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0 && Lower(words[i - 1]) && Upper(words[i])) snake += '_';
    snake += static_cast<char>(std::tolower(static_cast<unsigned char>(words[i])));
  }
  return snake;
}

}  // namespace floe::keras
