"""The cases of every layer of Keras 3 and Keras 2: each argument of a layer, and of its call, off its default.

A layer has what it must be given, its inputs (as in keras_sweep.KINDS), and values of arguments which are not those of all
layers. An argument without a value is reported by missing().
"""
import inspect

# Argument: values, in any layer that has it.
ARGUMENTS = {
    "activation": ["'relu'", "'tanh'", "'gelu'", "'softmax'", "'hard_sigmoid'", "'leaky_relu'"], "recurrent_activation": ["'hard_sigmoid'", "'tanh'"],
    "use_bias": ["False", "True"], "trainable": ["False"], "center": ["False"], "scale": ["False"], "epsilon": ["0.1"], "momentum": ["0.5"],
    "unit_forget_bias": ["False"], "dropout": ["0.3"], "recurrent_dropout": ["0.3"], "seed": ["3"], "return_sequences": ["True"],
    "return_state": ["True"], "go_backwards": ["True"], "unroll": ["True"], "reset_after": ["False"], "use_cudnn": ["False"],
    "keepdims": ["True"], "name": ["'other'"], "synchronized": ["True"], "sparse": ["True"], "rate": ["0.2"], "noise_shape": ["(None, 1)"],
    "lora_rank": ["2"], "lora_alpha": ["3"], "dtype": ["'float64'", "'float16'", "'mixed_float16'", "'bfloat16'"], "quantization_config": ["None"], "gptq_unpacked_column_size": ["None"],
    "weights": ["None"], "pool_size": ["3"], "factor": ["0.1"], "value_range": ["(0, 1)"], "interpolation": ["'nearest'", "'bicubic'"], "fill_mode": ["'nearest'"],
    "fill_value": ["1."], "implementation": ["1", "2"], "time_major": ["False", "True"], "dynamic": ["False"], "flash_attention": ["False"],
    "zero_output_for_mask": ["True"], "renorm": ["False"], "renorm_clipping": ["None"], "renorm_momentum": ["0.5"], "virtual_batch_size": ["None"],
    "fused": ["False"], "input_length": ["None"], "robust_masking": ["True"], "softmax_robust_masking": ["True"], "stateful": ["True"],
}
FILL = {"initializer": "'ones'", "regularizer": "'l2'", "constraint": "'non_neg'"}
CALL = {"mask": ["B"], "training": ["False"], "use_causal_mask": ["True"], "return_attention_scores": ["True"]}


def conv(rank, transpose=False, depthwise=False):
    size = {1: "8, 4", 2: "6, 5, 4", 3: "4, 5, 4, 4"}[rank]
    first = {1: "4, 8", 2: "4, 6, 5", 3: "4, 4, 5, 4"}[rank]
    given = "2" if depthwise else "4, 2"
    no_bias = ", use_bias=False"  # TensorFlow with oneDNN adds it wrongly there: answers differ from float64 sums
    more = {"strides": ["2"] + [f"({', '.join('12'[k % 2] for k in range(rank))},)"], "padding": ["'same'"] + (["'causal'"] if rank == 1 and not transpose and not depthwise else []),
            "data_format": [f"'channels_first'{no_bias} | f({first})"], "dilation_rate": ["2"], "groups": ["2"], "depth_multiplier": ["2"],
            "output_padding": ["0", "1, strides=2"]}
    return given, f"f({size})", more


def pool(rank):
    size = {1: "8, 4", 2: "6, 5, 4", 3: "4, 5, 4, 4"}[rank]
    first = {1: "4, 8", 2: "4, 6, 5", 3: "4, 4, 5, 4"}[rank]
    return size, first


def recurrent(given, shape, first=None):
    return given, f"f({shape})", {"strides": ["2"], "padding": ["'same'"], "dilation_rate": ["2"], "data_format": [f"'channels_first' | f({first})"]}


LAYERS = {
    "Activation": ("'relu'", "f(4)", {"activation": [f"'{a}'" for a in "celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu linear log_sigmoid log_softmax mish relu relu6 selu sigmoid silu soft_shrink softmax softplus softsign sparse_plus sparsemax squareplus swish tanh tanh_shrink threshold".split()]}),
    "ActivityRegularization": ("", "f(4)", {"l1": ["0.1"], "l2": ["0.1"]}),
    "AdditiveAttention": ("", "[f(3, 4), f(5, 4)]", {"use_scale": ["False"], "@mask": ["[b(3), b(5)]"]}),
    "Attention": ("", "[f(3, 4), f(5, 4)]", {"use_scale": ["True"], "score_mode": ["'concat'"], "@mask": ["[b(3), b(5)]", "[None, b(5)]"]}),
    "BatchNormalization": ("", "f(3, 4)", {"axis": ["1", "[1, 2]"], "@mask": ["b(3)"]}),
    "Bidirectional": ("L.LSTM(3)", "f(4, 3)", {"layer": ["L.GRU(3, return_sequences=True)", "L.LSTM(3, return_sequences=True, return_state=True)"], "merge_mode": ["'sum'", "'mul'", "'ave'", "None"], "backward_layer": ["L.LSTM(3, go_backwards=True, activation='relu')"], "@mask": ["b(4)"], "@initial_state": ["[f(3), f(3), f(3), f(3)]"]}),
    "CategoryEncoding": ("6", "n(4)", {"output_mode": ["'one_hot' | n(1)", "'count'", "'multi_hot'"], "@count_weights": ["f(4), output_mode='count'"]}),
    "CenterCrop": ("3, 2", "f(6, 5, 3)", {"data_format": ["'channels_first' | f(3, 6, 5)"], "height": ["8"]}),
    "Concatenate": ("", "[f(3, 4), f(3, 2)]", {"axis": ["1 | [f(2, 3), f(4, 3)]", "-1 | [f(4), i(3)]", "-1 | [h(4), f(3)]"]}),
    "Cropping1D": ("", "f(6, 4)", {"cropping": ["2", "(1, 2)"]}),
    "Cropping2D": ("1", "f(6, 5, 4)", {"cropping": ["2", "((1, 2), (0, 1))", "(1, 2)"], "data_format": ["'channels_first' | f(4, 6, 5)"]}),
    "Cropping3D": ("1", "f(4, 5, 4, 2)", {"cropping": ["((1, 2), (0, 1), (1, 1))"], "data_format": ["'channels_first' | f(2, 4, 5, 4)"]}),
    "Dense": ("4", "f(5)", {"units": ["2 | i(5)", "2 | f(3, 5)", "2 | h(5)", "2 | u(5)", "2 | d(5)"]}),
    "Discretization": ("bin_boundaries=[-1., 0., 1.]", "f(4)", {"output_mode": ["'one_hot' | f(1)", "'multi_hot'", "'count'"], "bin_boundaries": ["[0.5]"], "num_bins": ["None"], "epsilon": ["0.1"], "dtype": ["'int32'"]}),
    "Dot": ("axes=1", "[f(4), f(4)]", {"axes": ["2 | [f(3, 4), f(5, 4)]", "(1, 2) | [f(4, 3), f(2, 4)]", "1 | [i(4), f(4)]", "-1 | [h(4), h(4)]"], "normalize": ["True"]}),
    "ELU": ("", "f(4)", {"alpha": ["0.3"]}),
    "EinsumDense": ("'abc,cd->abd', output_shape=(None, 5)", "f(3, 4)", {"bias_axes": ["'d'", "'bd', activation='relu'"], "equation": ["'abc,cde->abde', output_shape=(3, 2, 2)"], "output_shape": ["(3, 5)"]}),
    "Embedding": ("6, 3", "n(4)", {"mask_zero": ["True"], "input_dim": ["9 | f(4)", "9 | u(4)", "9 | l(4)"], "output_dim": ["5"]}),
    "Flatten": ("", "f(3, 4)", {"data_format": ["'channels_first'", "'channels_first' | f(2, 3, 4)"]}),
    "GaussianNoise": ("0.1", "f(4)", {"stddev": ["0.4"]}), "GaussianDropout": ("0.1", "f(4)", {}), "Dropout": ("0.1", "f(4)", {}), "AlphaDropout": ("0.1", "f(4)", {}),
    "SpatialDropout1D": ("0.1", "f(3, 4)", {}), "SpatialDropout2D": ("0.1", "f(3, 4, 2)", {"data_format": ["'channels_first'"]}), "SpatialDropout3D": ("0.1", "f(3, 4, 2, 2)", {"data_format": ["'channels_first'"]}),
    "GroupNormalization": ("2", "f(3, 4)", {"axis": ["1 | f(4, 3)"], "groups": ["-1", "4"], "@mask": ["b(3)"]}),
    "GroupQueryAttention": ("4, 4, 2", "f(3, 5), f(4, 5)", {"use_gate": ["True"], "sliding_window": ["2"], "@key": ["f(4, 5)"], "@attention_mask": ["b(3, 4)"], "@query_mask": ["b(3)"], "@value_mask": ["b(4)"], "@key_mask": ["b(4)"], "head_dim": ["2"], "num_query_heads": ["2"], "num_key_value_heads": ["4"], "flash_attention": ["False"]}),
    "HashedCrossing": ("7", "(s(1), s(1))", {"output_mode": ["'one_hot'"], "num_bins": ["3 | (i(1), i(1))"], "dtype": ["'int32'"]}),
    "Hashing": ("7", "s(4)", {"mask_value": ["'red'"], "salt": ["3", "[3, 5]"], "output_mode": ["'multi_hot'", "'count'", "'one_hot' | s(1)"], "num_bins": ["5 | i(4)"], "dtype": ["'int32'"]}),
    "Identity": ("", "f(4)", {}), "Layer": ("", "f(4)", {"autocast": ["False"], "activity_regularizer": ["'l2'"]}),
    "IntegerLookup": ("vocabulary=[1, 2, 4]", "i(4)", {"max_tokens": ["5"], "num_oov_indices": ["2", "0 | 1 + 0 * n(1)"], "mask_token": ["0"], "oov_token": ["-7"], "vocabulary_dtype": ["'int64'", "'int32'"], "invert": ["True | n(4)"], "output_mode": ["'multi_hot'", "'count'", "'one_hot' | i(1)", "'tf_idf', idf_weights=[1., 2., 3.]"], "pad_to_max_tokens": ["True, max_tokens=9, output_mode='multi_hot'"], "idf_weights": ["None"], "oov_method": ["'farmhash'"], "salt": ["3"]}),
    "StringLookup": ("vocabulary=['red', 'blue']", "s(4)", {"max_tokens": ["5"], "num_oov_indices": ["2"], "mask_token": ["'m'"], "oov_token": ["'none'"], "invert": ["True | n(4)"], "output_mode": ["'multi_hot'", "'count'", "'one_hot' | s(1)", "'tf_idf', idf_weights=[1., 2.]"], "pad_to_max_tokens": ["True, max_tokens=9, output_mode='multi_hot'"], "idf_weights": ["None"], "encoding": ["'utf-8'"], "oov_method": ["'farmhash'"], "salt": ["3"]}),
    "TextVectorization": ("vocabulary=['red', 'blue']", "s(1)", {"max_tokens": ["9"], "standardize": ["None", "'lower'", "'strip_punctuation'"], "split": ["None", "'character'"], "ngrams": ["2", "(1, 2)"], "output_mode": ["'multi_hot'", "'count'", "'tf_idf', idf_weights=[1., 2.]"], "output_sequence_length": ["3"], "pad_to_max_tokens": ["True, max_tokens=9, output_mode='multi_hot'"], "idf_weights": ["None"], "ragged": ["True"], "encoding": ["'utf-8'"]}),
    "LayerNormalization": ("", "f(3, 4)", {"axis": ["1", "[1, 2]"], "rms_scaling": ["True"]}), "LeakyReLU": ("", "f(4)", {"negative_slope": ["0.2"], "alpha": ["0.2"]}),
    "RMSNormalization": ("", "f(3, 4)", {"axis": ["1", "(1, 2)"]}), "UnitNormalization": ("", "f(3, 4)", {"axis": ["1", "(1, 2)"]}), "Softmax": ("", "f(3, 4)", {"axis": ["1", "(1, 2)"], "@mask": ["b(3, 4)"]}),
    "Masking": ("", "n(3, 4) * 1.", {"mask_value": ["2."]}), "MelSpectrogram": ("", "f(4096)", {"fft_length": ["1024"], "sequence_stride": ["256"], "sequence_length": ["512"], "window": ["'hamming'"], "sampling_rate": ["8000, max_freq=4000"], "num_mel_bins": ["20"], "min_freq": ["50."], "max_freq": ["4000."], "power_to_db": ["False"], "top_db": ["40."], "mag_exp": ["1."], "min_power": ["1e-4"], "ref_power": ["2."]}),
    "STFTSpectrogram": ("", "f(512)", {"mode": ["'log'", "'magnitude'", "'psd'", "'real'", "'imag'", "'angle'", "'stft'"], "frame_length": ["64"], "frame_step": ["32"], "fft_length": ["256"], "window": ["'hamming'"], "periodic": ["True"], "scaling": ["'spectrum'"], "padding": ["'same'"], "expand_dims": ["True"], "data_format": ["'channels_first' | f(2, 512)", "'channels_last' | f(512, 2)"]}),
    "MultiHeadAttention": ("2, 4", "f(3, 5), f(4, 5)", {"value_dim": ["3"], "output_shape": ["7"], "attention_axes": ["(2,) | f(2, 3, 5), f(2, 3, 5)"], "sliding_window": ["2"], "use_gate": ["True"], "@key": ["f(4, 5)"], "@attention_mask": ["b(3, 4)"], "@query_mask": ["b(3)"], "@value_mask": ["b(4)"], "@key_mask": ["b(4)"], "num_heads": ["3"], "key_dim": ["2"], "dropout": ["0.1"]}),
    "Normalization": ("mean=[1., 2., 3., 4.], variance=[1., 2., 3., 4.]", "f(3, 4)", {"axis": ["1 | f(4, 3)"], "invert": ["True"], "mean": ["2., variance=3., axis=None"], "variance": ["2., mean=3., axis=None"]}),
    "PReLU": ("", "f(3, 4)", {"shared_axes": ["[1]"]}), "Permute": ("(2, 1)", "f(3, 4)", {"dims": ["(3, 1, 2) | f(2, 3, 4)"]}),
    "ReLU": ("", "f(4)", {"max_value": ["1."], "negative_slope": ["0.3"], "threshold": ["0.5", "0.5, negative_slope=0.2, max_value=3."]}), "ThresholdedReLU": ("", "f(4)", {"theta": ["0.4"]}),
    "RepeatVector": ("3", "f(4)", {"n": ["2"]}), "Rescaling": ("2.", "f(4)", {"offset": ["0.5"], "scale": ["3. | u(4)", "[1., 2., 3., 4.]", "3. | i(4)"]}), "Reshape": ("(2, 2)", "f(4)", {"target_shape": ["(-1, 2)", "(4, 1)"]}),
    "Resizing": ("4, 8", "p(6, 5, 3)", {"interpolation": [f"'{m}'" for m in ("nearest", "bicubic", "lanczos3", "area", "gaussian", "mitchellcubic")] + ["'nearest' | u(6, 5, 3)"], "crop_to_aspect_ratio": ["True"], "pad_to_aspect_ratio": ["True", "True, fill_value=3."], "fill_mode": ["'constant'"], "antialias": ["True"], "data_format": ["'channels_first' | p(3, 6, 5)"], "height": ["9 | u(6, 5, 3)"], "width": ["3"]}),
    "RNN": ("L.LSTMCell(3)", "f(4, 3)", {"cell": ["[L.LSTMCell(3), L.GRUCell(2)]", "L.GRUCell(3, reset_after=False)", "L.SimpleRNNCell(3)", "L.StackedRNNCells([L.LSTMCell(2), L.SimpleRNNCell(3)])"], "@mask": ["b(4)"], "@initial_state": ["[f(3), f(3)]"]}),
    "SpectralNormalization": ("L.Dense(3)", "f(4)", {"power_iterations": ["2"], "layer": ["L.Conv1D(3, 2) | f(6, 4)"]}), "TimeDistributed": ("L.Dense(3)", "f(4, 5)", {"layer": ["L.Conv1D(2, 2) | f(3, 6, 2)", "L.LSTM(2) | f(3, 6, 2)"], "@mask": ["b(4)"]}),
    "UpSampling1D": ("", "f(4, 3)", {"size": ["3"]}), "UpSampling2D": ("", "f(3, 4, 2)", {"size": ["3", "(1, 2)"], "interpolation": ["'nearest'", "'bilinear'", "'bicubic'"], "data_format": ["'channels_first'"]}), "UpSampling3D": ("", "f(2, 3, 2, 2)", {"size": ["(1, 2, 3)"], "data_format": ["'channels_first'"]}),
    "ZeroPadding1D": ("", "f(4, 3)", {"padding": ["2", "(1, 2)"], "data_format": ["'channels_first'"]}), "ZeroPadding2D": ("", "f(4, 3, 2)", {"padding": ["2", "(1, 2)", "((1, 0), (2, 1))"], "data_format": ["'channels_first'"]}), "ZeroPadding3D": ("", "f(2, 3, 2, 2)", {"padding": ["2", "((1, 0), (2, 1), (0, 1))"], "data_format": ["'channels_first'"]}),
    "ReversibleEmbedding": ("6, 3", "n(4)", {"tie_weights": ["False"], "@reverse": ["False"], "mask_zero": ["True"], "reverse_dtype": ["'float16'"], "logit_soft_cap": ["2."]}),
    "MaxNumBoundingBoxes": None, "Lambda": None, "FlaxLayer": None, "JaxLayer": None, "InputLayer": None, "TorchModuleWrapper": None, "TFSMLayer": None, "Pipeline": None, "Wrapper": ("L.Dense(2)", None, {}), "StackedRNNCells": None, "LSTMCell": None, "GRUCell": None,
    "SimpleRNNCell": None, "DenseFeatures": None, "AbstractRNNCell": None,
    "GRU": recurrent("3", "4, 3"), "LSTM": recurrent("3", "4, 3"), "SimpleRNN": recurrent("3", "4, 3"),
    "ConvLSTM1D": recurrent("3, 2", "4, 6, 3", "4, 3, 6"), "ConvLSTM2D": recurrent("3, 2", "3, 4, 5, 3", "3, 3, 4, 5"), "ConvLSTM3D": recurrent("2, 2", "2, 3, 3, 3, 2", "2, 2, 3, 3, 3"),
}
for merge in ("Add", "Average", "Maximum", "Minimum", "Multiply", "Subtract"):
    LAYERS[merge] = ("", "[f(4), f(4)]", {"name": ["'a' | [i(4), f(4)]", "'a' | [i(4), i(4)]", "'a' | [h(4), f(4)]", "'a' | [u(4), u(4)]", "'a' | [f(3, 4), f(1, 4)]", "'a' | [f(4), f(3, 4)]", "'a' | [i(4), u(4)]", "'a' | [b(4), f(4)]"]})
for rank in (1, 2, 3):
    LAYERS[f"Conv{rank}D"] = conv(rank)
    LAYERS[f"Conv{rank}DTranspose"] = conv(rank, transpose=True)
    LAYERS[f"DepthwiseConv{rank}D"] = conv(rank, depthwise=True)
    LAYERS[f"SeparableConv{rank}D"] = conv(rank)
    LAYERS[f"LocallyConnected{rank}D"] = conv(rank)
    channels_last, channels_first = pool(rank)
    for which in ("Max", "Average"):
        for word in ("Pool", "Pooling"):
            LAYERS[f"{which}{word}{rank}D"] = ("2", f"f({channels_last})", {"strides": ["1"], "padding": ["'same'"], "data_format": [f"'channels_first' | f({channels_first})"]})
            LAYERS[f"Global{which}{word}{rank}D"] = ("", f"f({channels_last})", {"data_format": [f"'channels_first' | f({channels_first})"], **({"@mask": ["b(8)"]} if rank == 1 and which == "Average" else {})})
        LAYERS[f"Adaptive{which}Pooling{rank}D"] = ("2", f"f({channels_last})", {"output_size": ["3"], "data_format": [f"'channels_first' | f({channels_first})"]})
LAYERS["Conv1D"][2]["padding"].append("'causal', dilation_rate=2")
IMAGES = "AugMix AutoContrast ContrastLimitedAdaptiveHistogramEqualization CutMix Equalization MixUp RandAugment Solarization".split()


def layers_of(package):
    """{name: class}, a class once."""
    found = {}
    for name in dir(package.layers):
        layer = getattr(package.layers, name)
        if isinstance(layer, type) and issubclass(layer, package.layers.Layer) and layer not in found.values():
            found[name] = layer
    return found


def parameters(function):
    names = [n for n, p in inspect.signature(function).parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    return [n for n in names if n != "self"]


def entry(name):
    if name in LAYERS:
        return LAYERS[name]
    if name.startswith("Random") or name in IMAGES:  # at inference they give what they get, or are not in a model
        given = {"RandomCrop": "3, 2", "RandomTranslation": "0.1, 0.1", "RandomZoom": "0.1", "RandomFlip": "", "AutoContrast": "", "Equalization": "",
                 "ContrastLimitedAdaptiveHistogramEqualization": "", "AugMix": "", "RandAugment": "", "CutMix": "", "MixUp": "", "Solarization": "",
                 "RandomErasing": "", "RandomPerspective": "", "RandomElasticTransform": "", "RandomShear": ""}
        return given.get(name, "0.1"), "r(6, 5, 3)", {}
    return None


def values_of(name, argument, more):
    if argument in more:
        return more[argument]
    if argument in ARGUMENTS:
        return ARGUMENTS[argument]
    for end, value in FILL.items():
        if argument.endswith(end):
            return [value]
    if name.startswith("Random") or name in IMAGES:
        return []
    return None


def fits(given, argument, names):
    """What must be given, less an argument that has its own value."""
    positional = [p for p in given.split(", ") if p]
    if argument not in names[:len(positional)] and f"{argument}=" not in given:
        return given
    if "(" in given or "[" in given:
        return None if f"{argument}=" not in given and names.index(argument) > 0 else ""
    k = names.index(argument)
    return ", ".join(p if "=" in p else f"{names[j]}={p}" for j, p in enumerate(positional) if j != k and not p.startswith(f"{argument}="))


def cases(package):
    """{layer: [expressions]}"""
    made = {}
    for name, layer in layers_of(package).items():
        have = entry(name)
        if have is None or have[1] is None:
            continue
        given, inputs, more = have
        names = parameters(layer.__init__)
        expressions = made.setdefault(name, [])
        expressions.append(f"L.{name}({given})({inputs})")
        for argument in list(dict.fromkeys([*names, "dtype", "trainable"])):
            for value in values_of(name, argument, more) or ():
                value, _, other = value.partition(" | ")
                rest = fits(given, argument, names)
                if rest is not None:
                    arguments = ", ".join(p for p in (rest, f"{argument}={value}") if p)
                    expressions.append(f"L.{name}({arguments})({other or inputs})")
        for argument in [n for n in parameters(layer.call) if n not in ("inputs", "self")]:
            for value in more.get(f"@{argument}", CALL.get(argument, ())):
                if argument == "mask" and value == "B":
                    value = f"b({inputs.split('(')[1].split(',')[0]})" if name in ("GRU", "LSTM", "SimpleRNN", "ConvLSTM1D", "ConvLSTM2D") else None
                if value:
                    value, _, init = value.partition(", output_mode")
                    made_of = f"{given}, output_mode{init}" if init else given
                    expressions.append(f"L.{name}({made_of})({inputs}, {argument}={value})")
    return made


def missing(package):
    lost = []
    for name, layer in layers_of(package).items():
        if name in LAYERS and LAYERS[name] is None:
            continue
        have = entry(name)
        if have is None:
            lost.append(f"{package.__name__}.layers.{name} has no case")
            continue
        lost += [f"{package.__name__}.layers.{name}: no case gives {a}" for a in parameters(layer.__init__) if values_of(name, a, have[2]) is None and f"{a}=" not in have[0]
                 and not parameters(layer.__init__).index(a) < len([p for p in have[0].split(", ") if p])]
    return lost
