"""More cases of keras_cases.py: models in models, whose weights old files keep in one row, and calls of one model several times."""
import numpy as np

from keras_cases import BOTH, KERAS3, case, ints


def dense(K, L, *units, name=None, width=4):
    """A functional model of dense layers in a row."""
    i = x = L.Input((width,))
    for n in units:
        x = L.Dense(n, activation="tanh")(x)
    return K.Model(i, x, **({"name": name} if name else {}))


def normed(K, L, width=4, frozen=()):
    """Trained and other variables by turns."""
    layers = [L.Dense(3), L.BatchNormalization(), L.Dense(4, use_bias=False), L.BatchNormalization(scale=False), L.LayerNormalization()]
    model = K.Sequential([L.Input((width,))] + layers)
    for k in frozen:
        layers[k].trainable = False
    return model


# ---- the output is a model ----
@case("model is the output")
def _(K, L):
    i = L.Input((4,))
    return K.Model(i, dense(K, L, 3)(L.Dense(4)(i)))


@case("sequential is the output")
def _(K, L):
    i = L.Input((4,))
    return K.Model(i, normed(K, L)(L.Dense(4)(i)))


@case("autoencoder")
def _(K, L):
    encoder, decoder = dense(K, L, 3, 2, width=6), dense(K, L, 3, 6, width=2)
    i = L.Input((6,))
    return K.Model(i, decoder(encoder(i)))


@case("autoencoder with its code")
def _(K, L):
    encoder, decoder = dense(K, L, 3, 2, width=6), dense(K, L, 3, 6, width=2)
    i = L.Input((6,))
    code = encoder(i)
    return K.Model(i, [code, decoder(code)])


@case("model called twice, both outputs")
def _(K, L):
    a, b, base = L.Input((4,)), L.Input((4,)), dense(K, L, 3)
    return K.Model([a, b], [base(a), base(b)])


@case("model called twice, the second is the output")
def _(K, L):
    i, base = L.Input((4,)), dense(K, L, 4)
    return K.Model(i, base(base(i)))


@case("model called three times, outputs out of order")
def _(K, L):
    i, base = L.Input((4,)), dense(K, L, 4)
    a = base(i)
    b = base(a)
    c = base(L.Dense(4)(b))
    return K.Model(i, [c, a, L.Add()([a, b])])


@case("model called before elsewhere")
def _(K, L):
    base = dense(K, L, 4)
    base(L.Input((4,)))
    K.Model(j := L.Input((4,)), base(j))
    i = L.Input((4,))
    return K.Model(i, [base(i), L.Dense(2)(base(L.Dense(4)(i)))])


@case("sequential called twice")
def _(K, L):
    i, base = L.Input((4,)), normed(K, L)
    a = base(i)
    return K.Model(i, [base(L.ReLU()(a)), a])


@case("siamese distance")
def _(K, L):
    a, b, base = L.Input((4,)), L.Input((4,)), dense(K, L, 5, 3)
    return K.Model([a, b], L.Dense(1)(L.Subtract()([base(a), base(b)])))


@case("model twice on the same input")
def _(K, L):
    i, base = L.Input((4,)), dense(K, L, 4)
    return K.Model(i, L.Add()([base(i), base(i)]))


# ---- depth ----
@case("functional in sequential in functional")
def _(K, L):
    i = L.Input((4,))
    return K.Model(i, L.Dense(2)(K.Sequential([L.Input((4,)), L.Dense(4), dense(K, L, 3, 4), normed(K, L)])(i)))


@case("sequential in functional in sequential")
def _(K, L):
    i = L.Input((4,))
    middle = K.Model(i, normed(K, L)(L.Dense(4)(normed(K, L)(i))))
    return K.Sequential([L.Input((4,)), L.Dense(4), middle, L.Dense(2)])


@case("sequential of sequentials")
def _(K, L):
    x = normed(K, L)
    for _ in range(4):
        x = K.Sequential([L.Input((4,)), x, L.Dense(4)])
    return x


@case("sequential that begins with a model")
def _(K, L):
    return K.Sequential([dense(K, L, 3), L.Dropout(.1), L.Dense(2)])


@case("one model within two")
def _(K, L):
    base = dense(K, L, 4)
    i, j, k = L.Input((4,)), L.Input((4,)), L.Input((4,))
    left, right = K.Model(i, L.Dense(3)(base(i))), K.Model(j, L.Dense(3)(base(L.ReLU()(j))))
    return K.Model(k, L.Concatenate()([left(k), right(k)]))


# ---- what is not trained goes behind ----
for frozen in ((), (0,), (1,), (2, 3), (0, 1, 2, 3, 4)):
    @case(f"nested normalization frozen {frozen}")
    def _(K, L, frozen=frozen):
        i = L.Input((4,))
        return K.Model(i, L.Dense(2)(normed(K, L, frozen=frozen)(i)))


@case("nested model frozen")
def _(K, L):
    base = normed(K, L)
    base.trainable = False
    i = L.Input((4,))
    return K.Model(i, L.Dense(2)(base(i)))


@case("nested functional frozen between others")
def _(K, L):
    inner, i = normed(K, L), L.Input((4,))
    frozen = dense(K, L, 3, 4)
    frozen.trainable = False
    middle = K.Sequential([L.Input((4,)), L.Dense(4), frozen, inner, L.Dense(4)])
    return K.Model(i, L.Dense(2)(middle(i)))


@case("frozen layer deep inside")
def _(K, L):
    inner = normed(K, L, frozen=(1, 2))
    i, j = L.Input((4,)), L.Input((4,))
    middle = K.Model(i, L.Dense(3)(inner(L.Dense(4)(i))))
    return K.Model(j, middle(j))


# ---- layers of several parts inside ----
def inside(name, shape, *layers, to=BOTH):
    @case(f"nested {name}", to=to)
    def _(K, L):
        inner = K.Sequential([L.Input(shape)] + [layer(L) for layer in layers])
        i = L.Input(shape)
        x = inner(i)
        return K.Model(i, L.Dense(2)(x))


inside("lstm", (6, 4), lambda L: L.LSTM(3, return_sequences=True), lambda L: L.BatchNormalization(), lambda L: L.GRU(2))
inside("gru reset before", (6, 4), lambda L: L.GRU(3, reset_after=False), lambda L: L.Dense(3))
inside("bidirectional", (6, 4), lambda L: L.Bidirectional(L.LSTM(3, return_sequences=True)), lambda L: L.BatchNormalization(),
       lambda L: L.Bidirectional(L.GRU(2), merge_mode="sum"))
inside("bidirectional of two", (6, 4), lambda L: L.Bidirectional(L.LSTM(3), backward_layer=L.LSTM(3, go_backwards=True, use_bias=False)))
inside("time distributed", (6, 4), lambda L: L.TimeDistributed(L.Dense(3)), lambda L: L.TimeDistributed(L.BatchNormalization()), lambda L: L.Dense(3))
inside("rnn cells", (6, 4), lambda L: L.RNN([L.LSTMCell(3), L.GRUCell(2), L.LSTMCell(3)], return_sequences=True), lambda L: L.BatchNormalization(),
       lambda L: L.RNN(L.SimpleRNNCell(3)))
inside("conv lstm", (4, 6, 6, 2), lambda L: L.ConvLSTM2D(3, 3), lambda L: L.BatchNormalization())
inside("separable", (8, 8, 3), lambda L: L.SeparableConv2D(4, 3), lambda L: L.BatchNormalization(), lambda L: L.DepthwiseConv2D(3), lambda L: L.PReLU(),
       lambda L: L.Conv2DTranspose(2, 3), lambda L: L.GlobalAveragePooling2D())
inside("normalization", (4,), lambda L: L.Dense(4), lambda L: L.Normalization(mean=[1., 2., 3., 4.], variance=[1., .5, 2., 4.]), lambda L: L.Dense(3))
inside("group normalization", (4, 4, 4), lambda L: L.Conv2D(4, 3), lambda L: L.GroupNormalization(2), lambda L: L.BatchNormalization(center=False))
inside("spectral", (4,), lambda L: L.SpectralNormalization(L.Dense(5)), lambda L: L.Dense(4), to=KERAS3)
inside("rms", (4,), lambda L: L.RMSNormalization(), lambda L: L.Dense(4), to=KERAS3)


@case("nested adapted normalization")
def _(K, L):
    layer = L.Normalization()
    layer.adapt(np.random.default_rng(2).normal(3, 2, (50, 4)).astype(np.float32))
    inner = K.Sequential([L.Input((4,)), L.Dense(4), layer, L.Dense(3), L.BatchNormalization()])
    i = L.Input((4,))
    return K.Model(i, L.Dense(2)(inner(i)))


@case("nested attention")
def _(K, L):
    i = L.Input((5, 8))
    x = L.MultiHeadAttention(2, 4, value_dim=3)(i, i)
    x = L.LayerNormalization()(L.Add()([x, L.Dense(8, name="query")(i)]))
    x = L.AdditiveAttention()([x, L.Attention(use_scale=True)([i, i])])
    j = L.Input((5, 8))
    return K.Model(j, L.Dense(2)(K.Model(i, x)(j)))


@case("model over time")
def _(K, L):
    i = L.Input((5, 4))
    return K.Model(i, L.Dense(2)(L.TimeDistributed(normed(K, L))(i)))


@case("nested model over time")
def _(K, L):
    inner = K.Sequential([L.Input((5, 4)), L.TimeDistributed(dense(K, L, 3, 4)), L.BatchNormalization(), L.TimeDistributed(normed(K, L))])
    i = L.Input((5, 4))
    return K.Model(i, inner(L.Dense(4)(i)))


@case("nested embedding and lookup")
def _(K, L):
    i = L.Input((3,), dtype="int64")
    inner = K.Model(i, L.Dense(3)(L.Flatten()(L.Embedding(9, 4)(L.IntegerLookup(vocabulary=[3, 7, 11])(i)))))
    j = L.Input((3,), dtype="int64")
    return K.Model(j, L.Dense(2)(inner(j))), [ints((4, 3), 12).astype(np.int64)]


# ---- names ----
@case("names that clash")
def _(K, L):
    i = L.Input((4,))
    left = K.Model(i, L.Dense(4, name="dense_b")(L.Dense(4, name="dense")(i)), name="dense_a")
    j = L.Input((4,))
    right = K.Model(j, L.Dense(4, name="dense")(L.Dense(4, name="dense_b")(j)), name="b")
    k = L.Input((4,))
    return K.Model(k, L.Dense(2, name="dense")(L.Add()([left(k), right(left(k))])))


@case("slashes in names")
def _(K, L):
    i = L.Input((4,))
    try:
        x = L.BatchNormalization(name="conv1/bn")(L.Dense(3, name="conv1/dense")(i))
    except ValueError:  # not in this version
        x = L.BatchNormalization(name="conv1_bn")(L.Dense(3, name="conv1_dense")(i))
    j = L.Input((4,))
    return K.Model(j, L.Dense(2)(K.Model(i, x, name="net")(j)))


@case("attention beside layers of the same names")
def _(K, L):
    i = L.Input((5, 8))
    x = L.Dense(8, name="key")(L.MultiHeadAttention(2, 4, name="attention")(L.Dense(8, name="query")(i), i))
    j = L.Input((5, 8))
    return K.Model(j, K.Model(i, x)(j))


# ---- ends ----
@case("nested model with several outputs")
def _(K, L):
    i = L.Input((4,))
    x = L.Dense(3)(i)
    inner = K.Model(i, [L.Dense(2)(x), x, L.BatchNormalization()(x)])
    j = L.Input((4,))
    a, b, c = inner(j)
    return K.Model(j, [c, L.Dense(2)(a), b])


@case("nested model with a dict of outputs")
def _(K, L):
    i = L.Input((4,))
    inner = K.Model(i, {"z": L.Dense(2)(i), "a": L.Dense(3)(i)})
    j = L.Input((4,))
    y = inner(j)
    return K.Model(j, L.Concatenate()([y["z"], y["a"]]))


@case("nested model with two inputs")
def _(K, L):
    a, b = L.Input((4,)), L.Input((3,))
    inner = K.Model([a, b], L.Dense(2)(L.Concatenate()([L.Dense(3)(b), L.Dense(2)(a)])))
    i = L.Input((4,))
    return K.Model(i, inner([i, L.Dense(3)(i)]))


@case("nested model with a dict of inputs")
def _(K, L):
    a, b = L.Input((4,), name="left"), L.Input((3,), name="right")
    inner = K.Model({"right": b, "left": a}, L.Dense(2)(L.Concatenate()([L.Dense(3)(b), L.Dense(2)(a)])))
    i = L.Input((4,))
    return K.Model(i, inner({"left": i, "right": L.Dense(3)(i)}))


@case("image classifier on a base")
def _(K, L):
    i = x = L.Input((12, 12, 3))
    for n in (4, 6):
        x = L.ReLU()(L.BatchNormalization()(L.Conv2D(n, 3, strides=2, padding="same", use_bias=False)(x)))
    base = K.Model(i, x, name="base")
    base.trainable = False
    head = K.Sequential([L.Input((3, 3, 6)), L.GlobalAveragePooling2D(), L.Dropout(.2), L.Dense(3, activation="softmax")])
    j = L.Input((12, 12, 3))
    return K.Model(j, head(base(L.Rescaling(1 / 127.5, offset=-1)(j))))


@case("classifier in a classifier")
def _(K, L):
    base = K.Sequential([L.Input((12, 12, 3)), L.Conv2D(4, 3), L.BatchNormalization(), L.DepthwiseConv2D(3), L.BatchNormalization()])
    features = K.Sequential([L.Input((12, 12, 3)), base, L.GlobalAveragePooling2D()])
    head = K.Sequential([L.Input((4,)), L.Dense(5, activation="relu"), L.Dense(2, use_bias=False, activation="softmax")])
    return K.Sequential([features, head])


for kind in ("functional", "sequential"):
    @case(f"{kind} of floats on whole numbers", to=KERAS3)
    def _(K, L, kind=kind):
        layers = [L.Input((5, 4)), L.LayerNormalization()]
        inner = K.Sequential(layers) if kind == "sequential" else K.Model(layers[0], layers[1](layers[0]))
        i = L.Input((5, 4), dtype="int32")
        return K.Model(i, inner(i)), [ints((3, 5, 4), 9)]
