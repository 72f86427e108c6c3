// Numbers of categories as layers give them: numbers, one-hot, multi-hot or counts.
#pragma once

#include <string>

#include "model/import/keras/layer.h"

namespace floe::keras {

// `mode`: int, one_hot, multi_hot (binary) or count. Numbers outside [0, depth) give zeros.
// `weights`: of counts, in the shape of the ids, or no value.
ValueRef EncodeCategories(LayerContext& c, ValueRef ids, const std::string& mode, int64_t depth,
                          DType dtype, ValueRef weights = {});

// The type that the layer's options name, or `otherwise`.
DType OptionType(LayerContext& c, DType otherwise);

// Tokens of a lookup layer: the file's asset, or else the options; special tokens left out.
// Int tokens are read as text.
struct Vocabulary {
  std::vector<std::string> tokens;
  bool mask = false;  // has a mask token
  std::string mask_token, oov_token;
  int64_t oov = 1;  // indices for what is not in it
  int64_t oov_start = 0, token_start = 0;
};

// A lookup of `ids` (string or int64) by the options of `options`, with assets at `asset`.
struct Lookup {
  DType key = DType::kString;
  std::string mode = "int";
  int64_t depth = 0;
  Vocabulary vocabulary;
};
Lookup LookupOf(LayerContext& c, DType key, const Json& options, const std::string& asset_path,
                bool text_vectorization);
ValueRef LookUp(LayerContext& c, const Lookup& lookup, ValueRef ids);
// Encoded as the mode says, with idf_weights for tf_idf.
ValueRef EncodeLookup(LayerContext& c, const Lookup& lookup, ValueRef ids);
// The same of rows of unlike lengths: those of `ids` [all of them] that `splits` names.
ValueRef EncodeRaggedLookup(LayerContext& c, const Lookup& lookup, ValueRef ids, ValueRef splits);

}  // namespace floe::keras
