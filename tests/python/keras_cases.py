"""Small models, a layer or two each, for test_keras.py: made with Keras 3 and with tf_keras (Keras 2).

A case is a name and a function of (K, L), the package and its layers, which returns a model, or a model and its inputs.
`both` cases exist in either version; the others in one.
"""
import numpy as np

BOTH, KERAS2, KERAS3 = {}, {}, {}


def one(L, shape, *layers, dtype="float32"):
    """A functional model of layers in a row."""
    def build(K, L):
        i = x = L.Input(shape, dtype=dtype)
        for layer in layers:
            x = layer(L)(x)
        return K.Model(i, x)
    return build


def row(name, shape, *layers, to=BOTH, dtype="float32"):
    to[name] = one(None, shape, *layers, dtype=dtype)


def case(name, to=BOTH):
    def add(function):
        to[name] = function
        return function
    return add


def ints(shape, high, low=0):
    return np.random.default_rng(5).integers(low, high, shape).astype(np.int32)


# ---- core ----
row("dense", (5,), lambda L: L.Dense(3, activation="relu"))
row("dense no bias", (5,), lambda L: L.Dense(3, use_bias=False))
row("dense rank 3", (4, 5), lambda L: L.Dense(3, activation="tanh"))
row("dense rank 4", (2, 4, 5), lambda L: L.Dense(3))
row("dense open length", (None, 5), lambda L: L.Dense(3))
row("einsum dense", (4, 5), lambda L: L.EinsumDense("abc,cd->abd", output_shape=(None, 3), bias_axes="d"))
row("einsum dense heads", (4, 6), lambda L: L.EinsumDense("abc,cde->abde", output_shape=(None, 2, 3), bias_axes="de", activation="relu"))
row("einsum dense ellipsis", (4, 5), lambda L: L.EinsumDense("...x,xy->...y", output_shape=3, bias_axes="y"))
row("activation", (5,), lambda L: L.Activation("swish"))
row("identity", (5,), lambda L: L.Dropout(.5), lambda L: L.GaussianNoise(1.), lambda L: L.GaussianDropout(.5),
    lambda L: L.ActivityRegularization(.1), lambda L: L.AlphaDropout(.3))
row("identity layer", (5,), lambda L: L.Identity())
row("spatial dropout", (5, 3), lambda L: L.SpatialDropout1D(.5))


@case("embedding")
def _(K, L):
    i = L.Input((6,), dtype="int32")
    return K.Model(i, L.Embedding(9, 4)(i)), [ints((3, 6), 9)]


@case("embedding float ids")
def _(K, L):
    i = L.Input((6,))
    return K.Model(i, L.Embedding(9, 4)(i)), [ints((3, 6), 9).astype(np.float32)]


# ---- activations ----
for a in ["relu", "sigmoid", "tanh", "softmax", "softplus", "softsign", "elu", "selu", "exponential", "gelu", "hard_sigmoid",
          "linear", "swish", "mish"]:
    row("activation " + a, (3, 7), lambda L, a=a: L.Dense(6, activation=a))
for a in ["relu6", "silu", "hard_silu", "leaky_relu", "log_softmax", "celu", "glu", "hard_tanh", "hard_shrink", "log_sigmoid",
          "soft_shrink", "sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus", "tanh_shrink"]:
    row("activation " + a, (3, 7), lambda L, a=a: L.Dense(6, activation=a), to=KERAS3)
row("relu layer", (5,), lambda L: L.ReLU())
row("relu 6", (5,), lambda L: L.ReLU(6.))
row("relu options", (5,), lambda L: L.ReLU(max_value=1., negative_slope=.2, threshold=.3))
row("relu threshold", (5,), lambda L: L.ReLU(threshold=.3))
row("relu at the threshold", (9,), lambda L: L.Rescaling(1.), lambda L: L.ReLU(negative_slope=.5, threshold=1.), dtype="int32")
row("leaky relu", (5,), lambda L: L.LeakyReLU(.15))
row("prelu", (4, 5), lambda L: L.PReLU())
row("prelu shared", (4, 5), lambda L: L.PReLU(shared_axes=[1]))
row("elu", (5,), lambda L: L.ELU(.7))
row("softmax", (4, 5), lambda L: L.Softmax())
row("softmax axis", (4, 5), lambda L: L.Softmax(axis=1))
row("softmax axes", (4, 5, 3), lambda L: L.Softmax(axis=(1, 2)))
row("thresholded relu", (5,), lambda L: L.ThresholdedReLU(.4), to=KERAS2)


@case("activation layer in dense")
def _(K, L):
    i = L.Input((5,))
    return K.Model(i, L.Dense(4, activation=L.LeakyReLU(.1))(i))


@case("activation function object", KERAS3)
def _(K, L):
    i = L.Input((5,))
    return K.Model(i, L.Dense(4, activation=K.activations.gelu)(L.Activation(K.activations.swish)(i)))


# ---- convolutions ----
for n, shape in ((1, (9, 4)), (2, (8, 7, 4)), (3, (5, 6, 5, 4))):
    conv = f"Conv{n}D"
    for options in (dict(padding="valid"), dict(padding="same"), dict(padding="same", strides=2),
                    dict(dilation_rate=2), dict(activation="relu", use_bias=False)):
        row(f"{conv} {options}", shape, lambda L, c=conv, o=options: getattr(L, c)(6, 3 if o.get("dilation_rate") != 2 else 2, **o))
    for options in (dict(padding="valid"), dict(padding="same", strides=2), dict(strides=3), dict(strides=2, output_padding=1)):
        row(f"{conv}Transpose {options}", shape, lambda L, c=conv, o=options: getattr(L, c + "Transpose")(5, 3 if n < 3 else 2, **o))
row("Conv1D causal", (9, 4), lambda L: L.Conv1D(3, 3, padding="causal", dilation_rate=2))
row("Conv1D causal strides", (9, 4), lambda L: L.Conv1D(3, 3, padding="causal", strides=2))
row("Conv1D open length", (None, 4), lambda L: L.Conv1D(3, 3, padding="same"))
row("Conv2D open size", (None, None, 3), lambda L: L.Conv2D(3, 3, padding="same", strides=2), lambda L: L.GlobalAveragePooling2D())
row("Conv2D groups", (8, 7, 4), lambda L: L.Conv2D(6, 3, groups=2))
row("Conv1D groups", (9, 4), lambda L: L.Conv1D(6, 3, groups=2))
row("Conv2D channels first", (4, 8, 7), lambda L: L.Conv2D(6, 3, data_format="channels_first"), to=KERAS3)
row("Conv2D uneven", (8, 7, 4), lambda L: L.Conv2D(6, (3, 2), strides=(2, 1), dilation_rate=1))
for n, shape in ((1, (9, 4)), (2, (8, 7, 4))):
    for options in (dict(padding="same"), dict(strides=2), dict(depth_multiplier=2, activation="relu")):
        row(f"DepthwiseConv{n}D {options}", shape, lambda L, n=n, o=options: getattr(L, f"DepthwiseConv{n}D")(3, **o))
        row(f"SeparableConv{n}D {options}", shape, lambda L, n=n, o=options: getattr(L, f"SeparableConv{n}D")(5, 3, **o))
row("DepthwiseConv2D dilated", (8, 7, 4), lambda L: L.DepthwiseConv2D(3, dilation_rate=2))
row("SeparableConv1D causal", (9, 4), lambda L: L.SeparableConv1D(5, 3, padding="causal"), to=KERAS2)

# ---- pooling ----
for n, shape in ((1, (9, 4)), (2, (8, 7, 4)), (3, (5, 6, 5, 4))):
    for kind in ("Max", "Average"):
        row(f"{kind}Pooling{n}D", shape, lambda L, k=kind, n=n: getattr(L, f"{k}Pooling{n}D")(2))
        row(f"{kind}Pooling{n}D same", shape, lambda L, k=kind, n=n: getattr(L, f"{k}Pooling{n}D")(3, strides=2, padding="same"))
        row(f"Global{kind}Pooling{n}D", shape, lambda L, k=kind, n=n: getattr(L, f"Global{k}Pooling{n}D")())
        row(f"Global{kind}Pooling{n}D keepdims", shape, lambda L, k=kind, n=n: getattr(L, f"Global{k}Pooling{n}D")(keepdims=True))
        row(f"Adaptive{kind}Pooling{n}D", shape, lambda L, k=kind, n=n: getattr(L, f"Adaptive{k}Pooling{n}D")(3), to=KERAS3)
row("pooling channels first", (4, 8, 8), lambda L: L.AveragePooling2D(2, data_format="channels_first"), to=KERAS3)


@case("masked average pooling")
def _(K, L):
    i = L.Input((6,), dtype="int32")
    return K.Model(i, L.GlobalAveragePooling1D()(L.Embedding(5, 4, mask_zero=True)(i))), [ints((3, 6), 3)]


# ---- normalisation ----
row("batch normalization", (6,), lambda L: L.BatchNormalization())
row("batch normalization images", (4, 5, 3), lambda L: L.BatchNormalization())
row("batch normalization axis 1", (4, 5, 3), lambda L: L.BatchNormalization(axis=1))
row("batch normalization bare", (6,), lambda L: L.BatchNormalization(center=False, scale=False))
row("layer normalization", (4, 6), lambda L: L.LayerNormalization())
row("layer normalization axes", (4, 6), lambda L: L.LayerNormalization(axis=[1, 2]))
row("layer normalization bare", (4, 6), lambda L: L.LayerNormalization(center=False, scale=False, epsilon=1e-6))
row("layer normalization axis 1", (4, 6), lambda L: L.LayerNormalization(axis=1))
row("group normalization", (4, 5, 6), lambda L: L.GroupNormalization(3))
row("instance normalization", (4, 5, 6), lambda L: L.GroupNormalization(-1))
row("unit normalization", (4, 6), lambda L: L.UnitNormalization())
row("rms normalization", (4, 6), lambda L: L.RMSNormalization(), to=KERAS3)
row("spectral normalization", (5,), lambda L: L.SpectralNormalization(L.Dense(4)))

# ---- recurrent ----
for kind in ("LSTM", "GRU", "SimpleRNN"):
    for options in (dict(), dict(return_sequences=True), dict(go_backwards=True), dict(return_sequences=True, go_backwards=True),
                    dict(use_bias=False), dict(activation="relu"), dict(unroll=True), dict(dropout=.3)):
        row(f"{kind} {options}", (6, 4), lambda L, k=kind, o=options: getattr(L, k)(3, **o))
    row(f"{kind} open length", (None, 4), lambda L, k=kind: getattr(L, k)(3))
row("LSTM hard sigmoid", (6, 4), lambda L: L.LSTM(3, recurrent_activation="hard_sigmoid"))
row("GRU reset before", (6, 4), lambda L: L.GRU(3, reset_after=False))
row("GRU reset before no bias", (6, 4), lambda L: L.GRU(3, reset_after=False, use_bias=False))
row("two LSTMs", (6, 4), lambda L: L.LSTM(3, return_sequences=True), lambda L: L.LSTM(2))
row("RNN cell", (6, 4), lambda L: L.RNN(L.LSTMCell(3)))
row("RNN cells", (6, 4), lambda L: L.RNN([L.LSTMCell(3), L.GRUCell(2), L.SimpleRNNCell(3)], return_sequences=True))
row("RNN stacked", (6, 4), lambda L: L.RNN(L.StackedRNNCells([L.GRUCell(3), L.GRUCell(2)])))
for mode in ("concat", "sum", "ave", "mul"):
    row(f"bidirectional {mode}", (6, 4), lambda L, m=mode: L.Bidirectional(L.LSTM(3), merge_mode=m))
    row(f"bidirectional sequences {mode}", (6, 4), lambda L, m=mode: L.Bidirectional(L.GRU(3, return_sequences=True), merge_mode=m))
row("bidirectional own backward", (6, 4), lambda L: L.Bidirectional(L.LSTM(3), backward_layer=L.LSTM(3, go_backwards=True, activation="relu")))
row("time distributed dense", (6, 4), lambda L: L.TimeDistributed(L.Dense(3)))
row("time distributed conv", (3, 8, 7, 2), lambda L: L.TimeDistributed(L.Conv2D(3, 3)))
row("time distributed open length", (None, 4), lambda L: L.TimeDistributed(L.Dense(3)))
row("ConvLSTM1D", (3, 7, 2), lambda L: L.ConvLSTM1D(3, 3, padding="same", return_sequences=True))
row("ConvLSTM2D", (3, 6, 5, 2), lambda L: L.ConvLSTM2D(3, 3))
row("ConvLSTM2D strides", (3, 6, 5, 2), lambda L: L.ConvLSTM2D(3, 3, strides=2, padding="same"))
row("ConvLSTM3D", (2, 5, 4, 4, 2), lambda L: L.ConvLSTM3D(2, 2))


@case("bidirectional apart")
def _(K, L):
    i = L.Input((6, 4))
    return K.Model(i, L.Bidirectional(L.LSTM(3), merge_mode=None)(i))


@case("states")
def _(K, L):
    i = L.Input((6, 4))
    x, h, c = L.LSTM(3, return_state=True, return_sequences=True)(i)
    y = L.GRU(3)(x, initial_state=h)
    return K.Model(i, [y, c])


@case("encoder and decoder")
def _(K, L):
    i, j = L.Input((6, 4)), L.Input((5, 2))
    _, h, c = L.LSTM(3, return_state=True)(i)
    return K.Model([i, j], L.Dense(2)(L.LSTM(3, return_sequences=True)(j, initial_state=[h, c])))


@case("bidirectional states")
def _(K, L):
    i = L.Input((6, 4))
    return K.Model(i, L.Bidirectional(L.LSTM(3, return_state=True))(i))


def masked(x):
    """A float input whose last steps are masked."""
    def inputs():
        v = np.random.default_rng(3).standard_normal((3, 6, 4)).astype(np.float32)
        v[0, 4:] = 0
        v[1, 2] = 0
        v[2, 5:] = 0
        return [v]
    def build(K, L):
        i = L.Input((6, 4))
        return K.Model(i, x(K, L, L.Masking()(i))), inputs()
    return build


for kind in ("LSTM", "GRU", "SimpleRNN"):
    BOTH[f"masked {kind}"] = masked(lambda K, L, x, k=kind: getattr(L, k)(3)(x))
    BOTH[f"masked {kind} sequences"] = masked(lambda K, L, x, k=kind: getattr(L, k)(3, return_sequences=True)(x))
    BOTH[f"masked {kind} backwards"] = masked(lambda K, L, x, k=kind: getattr(L, k)(3, go_backwards=True)(x))
    BOTH[f"masked bidirectional {kind}"] = masked(lambda K, L, x, k=kind: L.Bidirectional(getattr(L, k)(3))(x))
    BOTH[f"masked bidirectional {kind} sequences"] = masked(
        lambda K, L, x, k=kind: L.Bidirectional(getattr(L, k)(3, return_sequences=True))(x))
BOTH["masked two layers"] = masked(lambda K, L, x: L.LSTM(2)(L.LSTM(3, return_sequences=True)(L.Dense(4)(L.Dropout(.2)(x)))))
BOTH["masked add"] = masked(lambda K, L, x: L.LSTM(2)(L.Add()([x, L.Dense(4)(x)])))
BOTH["masked concatenate"] = masked(lambda K, L, x: L.LSTM(2)(L.Concatenate()([x, L.Dense(4)(x)])))
BOTH["masked pooling"] = masked(lambda K, L, x: L.GlobalAveragePooling1D()(L.Activation("relu")(x)))
BOTH["masked time distributed"] = masked(lambda K, L, x: L.LSTM(2)(L.TimeDistributed(L.Dense(3))(x)))
BOTH["masked normalization"] = masked(lambda K, L, x: L.GRU(2)(L.LayerNormalization()(x)))
BOTH["masking"] = masked(lambda K, L, x: x)

# ---- attention ----


def attention(build_layer, with_key=False, **call):
    def build(K, L):
        q, v, k = L.Input((5, 6)), L.Input((7, 6)), L.Input((7, 6))
        inputs = [q, v, k] if with_key else [q, v]
        return K.Model(inputs, build_layer(L)(inputs, **call))
    return build


BOTH["attention"] = attention(lambda L: L.Attention())
BOTH["attention key"] = attention(lambda L: L.Attention(use_scale=True), with_key=True)
BOTH["attention concat"] = attention(lambda L: L.Attention(score_mode="concat", use_scale=True))
BOTH["attention causal"] = attention(lambda L: L.Attention(), use_causal_mask=True)
BOTH["additive attention"] = attention(lambda L: L.AdditiveAttention())
BOTH["additive attention plain"] = attention(lambda L: L.AdditiveAttention(use_scale=False), with_key=True)


def multi_head(make, **call):
    def build(K, L):
        q, v = L.Input((5, 6)), L.Input((7, 4))
        return K.Model([q, v], make(L)(q, v, **call))
    return build


BOTH["multi head attention"] = multi_head(lambda L: L.MultiHeadAttention(2, 3))
BOTH["multi head attention value dim"] = multi_head(lambda L: L.MultiHeadAttention(2, 3, value_dim=5, output_shape=7, use_bias=False))
BOTH["multi head attention scores"] = multi_head(lambda L: L.MultiHeadAttention(2, 3), return_attention_scores=True)
BOTH["multi head attention dropout"] = multi_head(lambda L: L.MultiHeadAttention(2, 3, dropout=.3))
KERAS3["grouped query attention"] = attention(
    lambda L: lambda x: L.GroupQueryAttention(3, 4, 2)(*x))


@case("self attention causal")
def _(K, L):
    i = L.Input((5, 6))
    return K.Model(i, L.MultiHeadAttention(2, 3)(i, i, use_causal_mask=True))


@case("multi head attention images")
def _(K, L):
    i = L.Input((3, 4, 6))
    return K.Model(i, L.MultiHeadAttention(2, 3, attention_axes=(1, 2))(i, i))


@case("multi head attention one axis")
def _(K, L):
    i = L.Input((3, 4, 6))
    return K.Model(i, L.MultiHeadAttention(2, 3, attention_axes=(2,))(i, i))


@case("masked self attention")
def _(K, L):
    i = L.Input((6,), dtype="int32")
    x = L.Embedding(5, 4, mask_zero=True)(i)
    x = L.MultiHeadAttention(2, 3)(x, x)
    return K.Model(i, L.GlobalAveragePooling1D()(x)), [np.maximum(ints((3, 6), 4), np.eye(3, 6, dtype=np.int32))]


@case("attention mask")
def _(K, L):
    i, m = L.Input((5, 6)), L.Input((5, 5), dtype="bool")
    model = K.Model([i, m], L.MultiHeadAttention(2, 3)(i, i, attention_mask=m))
    return model, [np.random.default_rng(1).standard_normal((3, 5, 6)).astype(np.float32), ints((3, 5, 5), 2).astype(bool) | np.eye(5, dtype=bool)]


@case("transformer block")
def _(K, L):
    i = L.Input((8,), dtype="int32")
    x = L.Embedding(20, 8)(i)
    y = L.MultiHeadAttention(2, 4)(x, x)
    x = L.LayerNormalization()(L.Add()([x, L.Dropout(.1)(y)]))
    y = L.Dense(8)(L.Dense(16, activation="gelu")(x))
    x = L.LayerNormalization()(L.Add()([x, y]))
    return K.Model(i, L.Dense(3, activation="softmax")(L.GlobalAveragePooling1D()(x))), [ints((3, 8), 20)]


# ---- merging ----
for kind in ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate"):
    def merge(K, L, kind=kind):
        a, b = L.Input((4, 5)), L.Input((4, 5))
        return K.Model([a, b], getattr(L, kind)()([a, b]))
    BOTH[kind.lower()] = merge


@case("add broadcast")
def _(K, L):
    a, b = L.Input((4, 5)), L.Input((5,))
    return K.Model([a, b], L.Add()([a, L.Dense(5)(b)]))


@case("concatenate axis")
def _(K, L):
    a, b, c = L.Input((4, 5)), L.Input((2, 5)), L.Input((3, 5))
    return K.Model([a, b, c], L.Concatenate(axis=1)([a, b, c]))


for axes, normalize in ((1, False), ((1, 1), True), ((2, 2), False), (-1, False)):
    def dot(K, L, axes=axes, normalize=normalize):
        a, b = L.Input((4, 5)), L.Input((4, 5))
        return K.Model([a, b], L.Dot(axes, normalize=normalize)([a, b]))
    BOTH[f"dot {axes} {normalize}"] = dot


@case("dot vectors")
def _(K, L):
    a, b = L.Input((5,)), L.Input((5,))
    return K.Model([a, b], L.Dot(1, normalize=True)([a, b]))


# ---- reshaping ----
row("reshape", (4, 6), lambda L: L.Reshape((3, 8)))
row("reshape open", (4, 6), lambda L: L.Reshape((-1, 3)))
row("flatten", (4, 6, 2), lambda L: L.Flatten())
row("flatten open", (None, 6), lambda L: L.Flatten())
row("permute", (4, 6, 2), lambda L: L.Permute((3, 1, 2)))
row("repeat vector", (4,), lambda L: L.RepeatVector(3))
row("Cropping1D", (8, 3), lambda L: L.Cropping1D((1, 2)))
row("Cropping2D", (8, 7, 3), lambda L: L.Cropping2D(((1, 2), (2, 0))))
row("Cropping3D", (6, 7, 5, 3), lambda L: L.Cropping3D(1))
row("ZeroPadding1D", (8, 3), lambda L: L.ZeroPadding1D((1, 2)))
row("ZeroPadding2D", (8, 7, 3), lambda L: L.ZeroPadding2D(((1, 2), (2, 0))))
row("ZeroPadding3D", (6, 7, 5, 3), lambda L: L.ZeroPadding3D((1, 2, 0)))
row("UpSampling1D", (4, 3), lambda L: L.UpSampling1D(3))
row("UpSampling2D", (4, 5, 3), lambda L: L.UpSampling2D((2, 3)))
row("UpSampling2D bilinear", (4, 5, 3), lambda L: L.UpSampling2D(2, interpolation="bilinear"))
row("UpSampling2D bicubic", (4, 5, 3), lambda L: L.UpSampling2D(2, interpolation="bicubic"))
row("UpSampling3D", (2, 3, 2, 3), lambda L: L.UpSampling3D(2))
row("UpSampling2D open", (None, None, 3), lambda L: L.UpSampling2D(2))

# ---- preprocessing ----
row("rescaling", (4, 5, 3), lambda L: L.Rescaling(1 / 127.5, offset=-1))
row("rescaling list", (4, 5, 3), lambda L: L.Rescaling([.1, .2, .3], offset=[1., 2., 3.]))
row("normalization given", (4,), lambda L: L.Normalization(mean=[1., 2., 3., 4.], variance=[1., .5, 2., 4.]))
row("normalization scalar", (4,), lambda L: L.Normalization(axis=None, mean=2., variance=3.))
row("normalization inverted", (4,), lambda L: L.Normalization(mean=[1., 2., 3., 4.], variance=[1., .5, 2., 4.], invert=True), to=KERAS3)
for way in ("bilinear", "nearest", "bicubic"):
    row(f"resizing {way}", (8, 6, 3), lambda L, w=way: L.Resizing(5, 9, interpolation=w))
row("resizing area", (8, 6, 3), lambda L: L.Resizing(4, 3, interpolation="area"), to=KERAS2)
row("resizing lanczos", (8, 6, 3), lambda L: L.Resizing(5, 9, interpolation="lanczos3"))
row("resizing antialias", (8, 6, 3), lambda L: L.Resizing(5, 4, antialias=True), to=KERAS3)
row("resizing crop", (8, 6, 3), lambda L: L.Resizing(5, 9, crop_to_aspect_ratio=True))
row("resizing pad", (8, 6, 3), lambda L: L.Resizing(5, 9, pad_to_aspect_ratio=True), to=KERAS3)
row("center crop", (8, 7, 3), lambda L: L.CenterCrop(5, 4))
row("center crop small", (4, 7, 3), lambda L: L.CenterCrop(5, 4))
row("random layers", (8, 7, 3), lambda L: L.RandomFlip(), lambda L: L.RandomRotation(.2), lambda L: L.RandomZoom(.2),
    lambda L: L.RandomContrast(.2), lambda L: L.RandomTranslation(.1, .1), lambda L: L.RandomBrightness(.2))
row("random crop", (8, 7, 3), lambda L: L.RandomCrop(5, 4))
row("discretization", (4,), lambda L: L.Discretization(bin_boundaries=[-1., 0., .5]))
row("discretization one hot", (1,), lambda L: L.Discretization(bin_boundaries=[-1., 0., .5], output_mode="one_hot"))
row("discretization counts", (4,), lambda L: L.Discretization(bin_boundaries=[-1., 0., .5], output_mode="count"))


@case("normalization adapted")
def _(K, L):
    i = L.Input((4, 3))
    layer = L.Normalization()
    layer.adapt(np.random.default_rng(2).normal(3, 2, (50, 4, 3)).astype(np.float32))
    return K.Model(i, layer(i))


for mode in ("one_hot", "multi_hot", "count"):
    def encode(K, L, mode=mode):
        shape = (1,) if mode == "one_hot" else (4,)
        i = L.Input(shape, dtype="int32")
        return K.Model(i, L.CategoryEncoding(6, output_mode=mode)(i)), [ints((3,) + shape, 6)]
    BOTH[f"category encoding {mode}"] = encode

WORDS = np.array([["b"], ["zz"], ["c"], ["a"], [""]], dtype=object)


def strings(layer, words=WORDS):
    def build(K, L):
        i = L.Input((words.shape[1],), dtype="string")
        return K.Model(i, layer(L)(i)), [words]
    return build


BOTH["string lookup"] = strings(lambda L: L.StringLookup(vocabulary=["a", "b", "c"]))
BOTH["string lookup mask"] = strings(lambda L: L.StringLookup(vocabulary=["a", "b", "c"], mask_token=""))
BOTH["string lookup no oov"] = strings(lambda L: L.StringLookup(vocabulary=["a", "b", "c"], num_oov_indices=0), WORDS[[0, 2, 3]])
BOTH["string lookup many oov"] = strings(lambda L: L.StringLookup(vocabulary=["a", "b", "c"], num_oov_indices=3))
for mode in ("one_hot", "multi_hot", "count"):
    BOTH[f"string lookup {mode}"] = strings(lambda L, m=mode: L.StringLookup(vocabulary=["a", "b", "c"], output_mode=m))
BOTH["string lookup tf_idf"] = strings(
    lambda L: L.StringLookup(vocabulary=["a", "b", "c"], output_mode="tf_idf", idf_weights=[.5, .25, 2.]))


@case("string lookup adapted", KERAS3)
def _(K, L):
    layer = L.StringLookup()
    layer.adapt(["x", "y", "x", "b"])
    i = L.Input((1,), dtype="string")
    return K.Model(i, layer(i)), [WORDS]


@case("string lookup inverted")
def _(K, L):
    i = L.Input((3,), dtype="int64")
    return K.Model(i, L.StringLookup(vocabulary=["a", "b"], invert=True)(i)), [ints((2, 3), 4).astype(np.int64)]


for mode in ("int", "multi_hot"):
    def integers(K, L, mode=mode):
        i = L.Input((4,), dtype="int64")
        return K.Model(i, L.IntegerLookup(vocabulary=[3, 7, 11], output_mode=mode)(i)), [ints((3, 4), 12).astype(np.int64)]
    BOTH[f"integer lookup {mode}"] = integers


@case("integer lookup many oov")
def _(K, L):
    i = L.Input((4,), dtype="int64")
    return K.Model(i, L.IntegerLookup(vocabulary=[3, 7, 11], num_oov_indices=2, mask_token=0)(i)), [ints((3, 4), 12).astype(np.int64)]


TEXTS = np.array([["The cat, sat!"], ["on THE mat mat mat"], [""], ["unheard of"]], dtype=object)
VOCABULARY = ["the", "cat", "sat", "mat"]
BOTH["text vectorization"] = strings(lambda L: L.TextVectorization(vocabulary=VOCABULARY), TEXTS)
BOTH["text vectorization length"] = strings(lambda L: L.TextVectorization(vocabulary=VOCABULARY, output_sequence_length=4), TEXTS)
BOTH["text vectorization lower"] = strings(
    lambda L: L.TextVectorization(vocabulary=VOCABULARY, standardize="lower", output_sequence_length=7), TEXTS)
BOTH["text vectorization ngrams"] = strings(
    lambda L: L.TextVectorization(vocabulary=VOCABULARY + ["the mat", "mat mat"], ngrams=2, output_sequence_length=6), TEXTS)
for mode in ("multi_hot", "count"):
    BOTH[f"text vectorization {mode}"] = strings(
        lambda L, m=mode: L.TextVectorization(vocabulary=VOCABULARY, output_mode=m), TEXTS)


@case("text vectorization adapted", KERAS3)
def _(K, L):
    layer = L.TextVectorization(output_sequence_length=5)
    layer.adapt(["the cat sat", "the mat"])
    i = L.Input((1,), dtype="string")
    return K.Model(i, L.Embedding(9, 3)(layer(i))), [TEXTS]


BOTH["hashing"] = strings(lambda L: L.Hashing(7))
BOTH["hashing salt"] = strings(lambda L: L.Hashing(7, salt=[3, 5]))
BOTH["hashing mask"] = strings(lambda L: L.Hashing(7, mask_value=""))


@case("hashing one hot")
def _(K, L):
    i = L.Input((1,), dtype="int64")
    return K.Model(i, L.Hashing(5, output_mode="one_hot")(i)), [ints((4, 1), 100).astype(np.int64)]


for mode in ("int", "one_hot"):
    def crossing(K, L, mode=mode):
        a, b = L.Input((1,), dtype="string"), L.Input((1,), dtype="int64")
        return K.Model([a, b], L.HashedCrossing(7, output_mode=mode)([a, b])), [WORDS, ints((5, 1), 9).astype(np.int64)]
    BOTH[f"hashed crossing {mode}"] = crossing


# ---- models ----
@case("sequential")
def _(K, L):
    return K.Sequential([L.Input((5,)), L.Dense(4, activation="relu"), L.Dense(2)])


@case("sequential without input")
def _(K, L):
    model = K.Sequential([L.Dense(4, activation="relu"), L.Dense(2)])
    model.build((None, 5))
    return model


@case("nested models")
def _(K, L):
    inner = K.Sequential([L.Input((4,)), L.Dense(3), L.BatchNormalization()])
    i = L.Input((5,))
    j = L.Input((3,))
    other = K.Model(j, [L.Dense(2)(j), L.BatchNormalization()(j)])
    a, b = other(inner(L.Dense(4)(i)))
    return K.Model(i, L.Concatenate()([a, b]))


@case("shared layers")
def _(K, L):
    a, b = L.Input((5,)), L.Input((5,))
    dense = L.Dense(4, activation="tanh")
    shared = K.Sequential([L.Input((4,)), L.Dense(3)])
    return K.Model([a, b], L.Subtract()([shared(dense(a)), shared(dense(b))]))


@case("several outputs")
def _(K, L):
    i = L.Input((5,))
    x = L.Dense(4, activation="relu")(i)
    return K.Model(i, [L.Dense(2, name="b_out")(x), L.Dense(3, name="a_out")(x)])


@case("dict outputs")
def _(K, L):
    a, b = L.Input((5,), name="left"), L.Input((3,), name="right")
    return K.Model({"left": a, "right": b}, {"y": L.Dense(2)(a), "x": L.Dense(4)(b)})


@case("input is an output")
def _(K, L):
    i = L.Input((5,))
    return K.Model(i, [i, L.Dense(2)(i)])


@case("a layer twice in a row")
def _(K, L):
    i = L.Input((5,))
    d = L.Dense(5, activation="tanh")
    return K.Model(i, d(d(i)))


@case("untrainable layer in a nested model")
def _(K, L):
    inner = K.Sequential([L.Input((4,)), L.Dense(4), L.BatchNormalization(), L.Dense(2)])
    inner.layers[0].trainable = False
    i = L.Input((4,))
    return K.Model(i, inner(i))


@case("operators")
def _(K, L):
    i = L.Input((4, 6))
    x = i * 2. + 1.
    x = x[:, 1:, ::2] - x[:, :-1, 1::2]
    return K.Model(i, x / 3.)


@case("operations", KERAS3)
def _(K, L):
    i = L.Input((4, 6))
    x = K.ops.reshape(i, (-1, 3, 8))
    x = K.ops.concatenate([x, K.ops.exp(-x)], axis=-1)
    x = K.ops.mean(K.ops.transpose(x, (0, 2, 1)), axis=-1, keepdims=True)
    x = K.ops.squeeze(K.ops.where(x > .5, x, K.ops.zeros_like(x)), -1)
    return K.Model(i, K.ops.softmax(K.ops.clip(x, -1., 2.)))


@case("operations on shapes", KERAS3)
def _(K, L):
    i = L.Input((4, 6))
    a, b = K.ops.split(i, 2, axis=-1)
    x = K.ops.matmul(a, K.ops.swapaxes(b, 1, 2))
    x = K.ops.stack([x, K.ops.flip(x, axis=1)], axis=1)
    return K.Model(i, K.ops.expand_dims(K.ops.max(x, axis=1), -1))


@case("tf functions", KERAS2)
def _(K, L):
    import tensorflow as tf
    i = L.Input((4, 6))
    x = tf.reshape(i, (-1, 3, 8))
    x = tf.concat([x, tf.math.exp(-x)], axis=-1)
    x = tf.reduce_mean(tf.transpose(x, (0, 2, 1)), axis=-1, keepdims=True)
    x = tf.nn.relu(tf.squeeze(x, -1) - .2)
    return K.Model(i, tf.nn.softmax(tf.math.multiply(x, 2.)))


@case("lambda of float16", KERAS3)
def _(K, L):
    i = L.Input((5,))
    return K.Model(i, L.Dense(3, dtype="float32")(L.Dense(4, dtype="mixed_float16")(i)))
