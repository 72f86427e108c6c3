"""More cases of keras_cases.py: layers that Keras 3 alone has, for images, sound and language.

A window of STFTSpectrogram is in its stored weights alone, and would need SciPy.
"""
import numpy as np

from keras_cases import KERAS3, case, ints, row

row("auto contrast", (8, 7, 3), lambda L: L.AutoContrast(), to=KERAS3)
row("auto contrast range", (8, 7, 3), lambda L: L.AutoContrast(value_range=(-1, 1)), to=KERAS3)
row("always augmenting", (8, 7, 3), lambda L: L.Solarization(), lambda L: L.Pipeline([L.Equalization()]), lambda L: L.MaxNumBoundingBoxes(5), to=KERAS3)
row("pipeline", (8, 7, 3), lambda L: L.Pipeline([L.RandomFlip(), L.AutoContrast(), L.Rescaling(.5)]), to=KERAS3)
row("pipeline dense", (8, 7, 3), lambda L: L.Pipeline([L.Dense(4), L.RandomFlip(), L.Dense(5, activation="relu")]), to=KERAS3)
for mode in ("log", "magnitude", "psd", "real", "imag", "angle", "stft"):
    row(f"stft {mode}", (50, 2), lambda L, m=mode: L.STFTSpectrogram(mode=m, frame_length=16, window=None), to=KERAS3)
row("stft options", (50, 3), lambda L: L.STFTSpectrogram(mode="magnitude", frame_length=12, frame_step=5, fft_length=20, window=None,
                                                         padding="same", expand_dims=True), to=KERAS3)
row("mel", (900,), lambda L: L.MelSpectrogram(fft_length=128, sequence_stride=50, sampling_rate=8000, num_mel_bins=12), to=KERAS3)
row("mel options", (900,), lambda L: L.MelSpectrogram(fft_length=128, sequence_length=101, sequence_stride=64, window="hamming", num_mel_bins=9, min_freq=50,
                                                      max_freq=3000, power_to_db=False, mag_exp=1.), to=KERAS3)


def sounds(*shape):
    return [np.random.default_rng(5).standard_normal(shape).astype(np.float32)]


@case("stft open length", to=KERAS3)
def _(K, L):
    i = L.Input((None, 1))
    return K.Model(i, L.STFTSpectrogram(mode="psd", frame_length=16, window=None)(i)), sounds(3, 70, 1)


@case("mel open length", to=KERAS3)
def _(K, L):
    i = L.Input((None,))
    return K.Model(i, L.MelSpectrogram(fft_length=64, sequence_stride=32, num_mel_bins=8, top_db=20., ref_power=.5)(i)), sounds(2, 300)


for tied in (True, False):
    @case(f"reversible embedding tied {tied}", to=KERAS3)
    def _(K, L, tied=tied):
        i = L.Input((6,), dtype="int32")
        layer = L.ReversibleEmbedding(9, 4, tie_weights=tied, mask_zero=tied, logit_soft_cap=None if tied else 2.5)
        return K.Model(i, layer(L.Dense(4)(layer(i)), reverse=True)), [ints((3, 6), 9)]


def quantised(K, model, x):
    model.quantize("int8")
    return model, [x]


@case("int8 dense", to=KERAS3)
def _(K, L):
    i = L.Input((6,))
    return quantised(K, K.Model(i, L.Dense(3, use_bias=False)(L.Dense(4, activation="relu")(i))), sounds(5, 6)[0])


for equation, shape, out in (("abc,cde->abde", (4, 6), (None, 3, 5)), ("abc,cb->ac", (4, 6), (6,)), ("abc,bcd->ad", (4, 6), (3,))):
    @case(f"int8 einsum {equation}", to=KERAS3)
    def _(K, L, equation=equation, shape=shape, out=out):
        i = L.Input(shape)
        layer = L.EinsumDense(equation, output_shape=out, bias_axes=equation[-1])
        return quantised(K, K.Model(i, layer(i)), sounds(3, *shape)[0])


@case("int8 embedding", to=KERAS3)
def _(K, L):
    i = L.Input((4,), dtype="int32")
    return quantised(K, K.Model(i, L.Embedding(9, 5)(i)), ints((2, 4), 9))


@case("stateful", to=KERAS3)
def _(K, L):
    i = L.Input(batch_shape=(2, 4, 3))
    return K.Model(i, [L.LSTM(3, stateful=True)(i), L.GRU(3, stateful=True, return_sequences=True)(i)]), sounds(2, 4, 3)


row("conv lstm channels first", (3, 3, 4, 5), lambda L: L.ConvLSTM2D(2, 2, data_format="channels_first"), to=KERAS3)
row("conv lstm channels first sequences", (3, 3, 4, 5), lambda L: L.ConvLSTM2D(2, 2, data_format="channels_first", return_sequences=True), to=KERAS3)
row("attention in a window", (6, 5), lambda L: lambda x: L.MultiHeadAttention(2, 4, sliding_window=2)(x, x), to=KERAS3)
row("mean of whole numbers", (6, 5, 3), lambda L: L.GlobalAveragePooling2D(), to=KERAS3, dtype="uint8")
row("layer normalisation of whole numbers", (6, 5), lambda L: L.LayerNormalization(), to=KERAS3, dtype="int32")
row("rms normalisation of whole numbers", (6, 5), lambda L: L.RMSNormalization(), to=KERAS3, dtype="int32")
row("group normalisation of whole numbers", (5, 4, 6), lambda L: L.GroupNormalization(3), to=KERAS3, dtype="int32")


@case("resized whole numbers", to=KERAS3)
def _(K, L):
    i = L.Input((6, 5, 3), dtype="uint8")
    x = np.random.default_rng(5).integers(0, 256, (2, 6, 5, 3)).astype(np.uint8)
    return K.Model(i, [L.Resizing(4, 8)(i), L.Resizing(9, 8, interpolation="bicubic")(i)]), [x]


for made in ("Identity()", "Rescaling(.5)", "Normalization(mean=0., variance=1.)", "Dropout(.1)", "ReLU()", "LayerNormalization()"):
    @case(f"mask behind {made}")
    def _(K, L, made=made):
        i = L.Input((5,), dtype="int32")
        return K.Model(i, L.LSTM(2)(eval(f"L.{made}", {"L": L})(L.Embedding(6, 3, mask_zero=True)(i)))), [ints((4, 5), 3)]


# What a mask leaves out counts in products and extremes of Keras 3, and masks go on to the layers behind.
for kind in ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"):
    @case(f"masks of {kind}")
    def _(K, L, kind=kind):
        a, b, c = L.Input((5,), dtype="int32"), L.Input((5,), dtype="int32"), L.Input((5, 3))
        x, y = L.Embedding(6, 3, mask_zero=True)(a), L.Embedding(6, 3, mask_zero=True)(b)
        joined = [getattr(L, kind)()(pair) for pair in ([x, y], [x, c], [c, y])]
        return K.Model([a, b, c], joined + [L.LSTM(2)(z) for z in joined]), [ints((4, 5), 3), ints((4, 5), 6) % 3, sounds(4, 5, 3)[0]]


# Attention takes the masks off its inputs, for all that Keras runs after it.
def attend(L, *x):
    return L.MultiHeadAttention(2, 3)(*x)


for name, build in {
    "residual": lambda L, x: L.Add()([x, attend(L, x, x)]),
    "twice": lambda L, x: attend(L, attend(L, x, x), x),
    "beside": lambda L, x: L.Concatenate()([attend(L, x, x), attend(L, x, x)]),
    "before": lambda L, x: L.Concatenate()([L.LSTM(3, return_sequences=True)(x), attend(L, x, x)]),
    "after": lambda L, x: L.Concatenate()([attend(L, x, x), L.LSTM(3, return_sequences=True)(x)]),
    "deeper": lambda L, x: L.Concatenate()([attend(L, x, x), L.Dense(3)(L.LSTM(3, return_sequences=True)(x))]),
    "dropped out": lambda L, x: L.Add()([x, attend(L, L.Dropout(.5)(x), x)]),
    "cross": lambda L, x: L.AdditiveAttention()([x, attend(L, L.Dense(4)(x), x)]),
}.items():
    @case(f"attention and masks {name}", to=KERAS3)
    def _(K, L, build=build):
        i = L.Input((5,), dtype="int32")
        y = build(L, L.Embedding(6, 4, mask_zero=True)(i))
        return K.Model(i, L.LSTM(2)(y)), [ints((4, 5), 3)]


@case("attention and masks in a model in a model", to=KERAS3)
def _(K, L):
    inner = L.Input((5, 4))
    encoder = K.Model(inner, L.LayerNormalization()(attend(L, inner, inner)))
    i = L.Input((5,), dtype="int32")
    x = L.Embedding(6, 4, mask_zero=True)(i)
    return K.Model(i, L.LSTM(2)(L.Add()([encoder(x), x]))), [ints((4, 5), 3)]


@case("attention and masks into models")
def _(K, L):
    a, b = L.Input((5, 4)), L.Input((5, 4))
    pair = K.Model([a, b], [L.LSTM(2)(a), L.LSTM(3)(b)])
    i = L.Input((5,), dtype="int32")
    x = L.Embedding(6, 4, mask_zero=True)(i)
    return K.Model(i, [K.Sequential([L.Input((5, 4)), L.LSTM(2)])(x), *pair([x, L.Dense(4)(x)])]), [ints((4, 5), 3)]


for dtype in ("int32", "int64", "uint16", "float16"):
    @case(f"average of {dtype}", to=KERAS3)
    def _(K, L, dtype=dtype):
        i, j = L.Input((5,), dtype=dtype), L.Input((5,), dtype="uint8")
        return K.Model([i, j], L.Average()([i, j])), [ints((3, 5), 50).astype(dtype), ints((3, 5), 9).astype("uint8")]
