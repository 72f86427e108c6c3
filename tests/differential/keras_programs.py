"""Random Keras models as programs: a line of Python for each value, so that a model can be printed, cut and made again."""
import re

import numpy as np


class Program:
    """Lines that make a functional model. `K` is the package, `L` its layers, `ops` what is called between layers."""

    def __init__(self, package, rng):
        self.package, self.rng = package, rng
        self.lines = []  # (names made, text)
        self.inputs, self.values = [], []  # names
        self.space = namespace(package)

    def choice(self, items):
        return items[int(self.rng.randint(len(items)))]

    def add(self, name, text):
        """Whether the line can be run."""
        try:
            exec(text, self.space)  # pylint: disable=exec-used
        except Exception:  # whatever Keras raises: this line is not in the program
            return False
        self.lines.append((name, text))
        return True

    def value(self, text):
        name = f"v{len(self.lines)}"
        if self.add(name, f"{name} = {text}"):
            made = self.space[name]
            if hasattr(made, "shape") and getattr(made.shape, "rank", 0) is not None:
                self.values.append(name)
                return name
        return None

    def input(self, shape, dtype):
        name = f"in{len(self.inputs)}"
        self.inputs.append(name)
        self.add(name, f"{name} = L.Input({tuple(shape)}, dtype={dtype!r}, name={name!r})")
        self.values.append(name)

    def shape(self, name):
        return [d if isinstance(d, int) else None for d in self.space[name].shape]

    def dtype(self, name):
        dtype = self.space[name].dtype
        return getattr(dtype, "name", dtype)

    def pick(self, dtypes):
        """A value, rather a late one; None where there is none."""
        have = [n for n in self.values if self.dtype(n) in dtypes
                and None not in self.shape(n)[1:]]
        if not have:
            return None
        return have[-1] if self.rng.rand() < .5 else self.choice(have)

    def like(self, name):
        """A value that can be joined with it element by element."""
        return self.choice([n for n in self.values if self.shape(n) == self.shape(name) and self.dtype(n) == self.dtype(name)])


def namespace(package):
    space = {"K": package, "L": package.layers, "np": np}
    if hasattr(package, "ops"):
        space["ops"] = package.ops
    else:
        import tensorflow as tf
        space["tf"] = tf
    return space


FLOATS = ("float32",)
ANY = ("float32", "float16", "float64", "int32", "int64", "uint8", "bool")
ACTIVATIONS = "relu tanh sigmoid gelu elu selu softplus softsign linear swish hard_sigmoid softmax relu6 exponential leaky_relu silu".split()
TANH, SAME, BILINEAR, OTHERS, INT32, AXIS_D = ["'tanh'"], ["'same'"], ["'bilinear'"], ["'nearest'", "'bicubic'"], ["'int32'"], ["'d'"]
MERGES = ["'sum'", "'mul'", "'ave'"]


def arguments(p, **values):
    """Some of the arguments, each with one of its values: `name=[value, ...]`."""
    return "".join(f", {name}={p.choice(options)}" for name, options in values.items() if p.rng.rand() < .45)


def weights(p):
    return arguments(p, activation=[repr(p.choice(ACTIVATIONS))], use_bias=["False", "True"])


def anywhere(p, x):
    """Layers for any rank."""
    last = p.shape(x)[-1]
    made = p.choice([
        f"L.Dense({p.rng.randint(1, 9)}{weights(p)})({x})", f"L.LayerNormalization({arguments(p, epsilon=[.1, .01], center=[False], scale=[False])[2:]})({x})",
        f"L.BatchNormalization({arguments(p, epsilon=[.1, .01], center=[False], scale=[False], momentum=[.5])[2:]})({x})", f"L.Dropout({p.choice([.1, .5])})({x})",
        f"L.Activation({p.choice(ACTIVATIONS)!r})({x})", f"L.PReLU()({x})", f"L.UnitNormalization()({x})", f"L.Rescaling({p.choice([2., .5])}{arguments(p, offset=[1., -.5])})({x})",
        f"L.ReLU({arguments(p, max_value=[1., 6.], negative_slope=[.1, .3], threshold=[.2, 1.])[2:]})({x})", f"L.LeakyReLU({p.choice([.1, .4])})({x})", f"L.ELU({p.choice([.5, 2.])})({x})",
        f"L.Softmax()({x})", f"L.GroupNormalization({p.choice([1, last])}{arguments(p, epsilon=[.1], center=[False])})({x})", f"L.GaussianNoise(.2)({x})", f"L.Flatten()({x})",
        f"L.Add()([{x}, {p.like(x)}])", f"L.Multiply()([{x}, {p.like(x)}])", f"L.Average()([{x}, {p.like(x)}])", f"L.Maximum()([{x}, {p.like(x)}])", f"L.Subtract()([{x}, {p.like(x)}])",
        f"L.Concatenate({arguments(p, axis=[-1, 1])[2:]})([{x}, {p.like(x)}])"])
    # Keras casts what these answer to the input's type. TensorFlow's cast of a negative number to an unsigned one depends on its place.
    undefined = p.dtype(x) == "uint8" and made.startswith(("L.LayerNormalization", "L.GroupNormalization"))
    return f"L.Flatten()({x})" if undefined else made


def vectors(p, x):
    return p.choice([f"L.Reshape((-1, 1))({x})", f"L.RepeatVector({p.rng.randint(1, 4)})({x})", f"L.Dense(12)({x})", f"L.Dot(1{arguments(p, normalize=[True])})([{x}, {p.like(x)}])"])


def sequences(p, x):
    units, time = p.rng.randint(1, 6), p.shape(x)[1]
    state = arguments(p, return_sequences=[True], go_backwards=[True], activation=["'relu'", "'sigmoid'"], use_bias=[False], dropout=[.2])
    return p.choice([
        f"L.Conv1D({units}, {p.rng.randint(1, 4)}, padding={p.choice(['same', 'valid', 'causal'])!r}{weights(p)}{arguments(p, strides=[2], dilation_rate=[1])})({x})",
        f"L.Conv1D({units}, 2, padding='causal', dilation_rate=2{weights(p)})({x})", f"L.LSTM({units}{state}{arguments(p, unit_forget_bias=[False], recurrent_activation=TANH)})({x})",
        f"L.GRU({units}{state}{arguments(p, reset_after=[False])})({x})", f"L.SimpleRNN({units}{state})({x})", f"L.Bidirectional(L.LSTM({units}, return_sequences=True){arguments(p, merge_mode=MERGES)})({x})",
        f"L.MaxPooling1D({p.rng.randint(1, 4)}{arguments(p, strides=[1, 2], padding=SAME)})({x})", f"L.AveragePooling1D(2{arguments(p, strides=[1], padding=SAME)})({x})",
        f"L.GlobalAveragePooling1D({arguments(p, keepdims=[True])[2:]})({x})", f"L.GlobalMaxPooling1D()({x})", f"L.TimeDistributed(L.Dense({units}))({x})", f"L.UpSampling1D({p.rng.randint(2, 4)})({x})",
        f"L.ZeroPadding1D({p.choice([1, (0, 2)])})({x})", f"L.Cropping1D({p.choice([1, (0, 1)])})({x})" if time > 2 else f"L.Permute((2, 1))({x})", f"L.Permute((2, 1))({x})",
        f"L.MultiHeadAttention(2, {max(units, 2)}{arguments(p, value_dim=[3], use_bias=[False])})({x}, {x}{arguments(p, use_causal_mask=[True])})", f"L.Attention({arguments(p, use_scale=[True])[2:]})([{x}, {p.like(x)}])",
        f"L.SeparableConv1D({units}, 2{weights(p)})({x})", f"L.DepthwiseConv1D(2{weights(p)}{arguments(p, depth_multiplier=[2])})({x})", f"L.Conv1DTranspose({units}, 3{arguments(p, strides=[2], padding=SAME)})({x})",
        f"L.EinsumDense('abc,cd->abd', output_shape=(None, {units}){arguments(p, bias_axes=AXIS_D)})({x})", f"L.AdditiveAttention()([{x}, {p.like(x)}])", f"L.Dot((2, 2))([{x}, {p.like(x)}])",
        f"L.SpatialDropout1D(.2)({x})", f"L.LSTM({units})(L.Masking(.0)({x}))"])


def images(p, x):
    units, size = p.rng.randint(1, 7), p.shape(x)[1]
    padding = arguments(p, padding=SAME)
    return p.choice([
        f"L.Conv2D({units}, {p.rng.randint(1, 4)}{padding}{weights(p)}{arguments(p, strides=[2, (1, 2)])})({x})", f"L.Conv2D({units}, 3, padding='same', dilation_rate=2{weights(p)})({x})",
        f"L.DepthwiseConv2D(3, padding='same'{weights(p)}{arguments(p, depth_multiplier=[2], strides=[2])})({x})", f"L.SeparableConv2D({units}, 3, padding='same'{weights(p)}{arguments(p, depth_multiplier=[2])})({x})",
        f"L.Conv2DTranspose({units}, {p.choice([2, 3])}{padding}{weights(p)}{arguments(p, strides=[2])})({x})", f"L.MaxPooling2D({p.choice([2, 3, (1, 2)])}, padding='same'{arguments(p, strides=[1, 2])})({x})",
        f"L.AveragePooling2D(2, padding='same'{arguments(p, strides=[1])})({x})", f"L.GlobalMaxPooling2D({arguments(p, keepdims=[True])[2:]})({x})", f"L.GlobalAveragePooling2D({arguments(p, keepdims=[True])[2:]})({x})",
        f"L.UpSampling2D({p.choice([2, (1, 2)])}{arguments(p, interpolation=BILINEAR)})({x})", f"L.ZeroPadding2D({p.choice([1, (1, 2), ((0, 1), (2, 0))])})({x})",
        f"L.Cropping2D({p.choice([1, ((0, 1), (1, 0))])})({x})" if size and size > 3 else f"L.Permute((2, 1, 3))({x})", f"L.Permute((2, 1, 3))({x})", f"L.Resizing({p.choice(['4, 6', '9, 3'])}{arguments(p, interpolation=OTHERS)})({x})",
        f"L.CenterCrop(3, 2)({x})", f"L.Reshape((-1, {p.shape(x)[-1]}))({x})", f"L.SpatialDropout2D(.1)({x})"])


def functions3(p, x):
    """keras.ops with arguments off their defaults."""
    rank = len(p.shape(x))
    axis, keep = p.rng.randint(1, rank), arguments(p, keepdims=[True])
    y = p.like(x)
    return p.choice([
        f"ops.{p.choice(['sum', 'mean', 'max', 'min', 'std', 'var', 'logsumexp', 'prod'])}({x}, axis={p.choice([axis, -1, (axis,), None])}{keep})", f"ops.{p.choice(['relu', 'gelu', 'silu', 'tanh', 'sin', 'cos', 'erf', 'square', 'abs', 'softplus', 'sigmoid', 'negative', 'exp2', 'arctan', 'log_sigmoid', 'celu', 'hard_tanh', 'tanh_shrink'])}({x})",
        f"ops.{p.choice(['add', 'subtract', 'multiply', 'maximum', 'minimum', 'arctan2', 'logaddexp', 'hypot'])}({x}, {p.choice([y, y, '2', '.5', '-1.5'])})", f"{x} * {p.choice(['2', '.5', '-3'])} + {p.choice([y, '1'])}", f"ops.clip({x}, {p.choice(['-.5, .5', '0, 1', '-1, 2.'])})",
        f"ops.concatenate([{x}, {y}], axis={p.choice([axis, -1])})", f"ops.stack([{x}, {y}], axis={p.choice([axis, -1])})", f"ops.expand_dims({x}, {p.choice([1, -1])})", f"ops.{p.choice(['softmax', 'log_softmax'])}({x}, axis={p.choice([axis, -1])})",
        f"ops.{p.choice(['flip', 'cumsum', 'sort'])}({x}, axis={axis})", f"ops.flip({x})", f"ops.roll({x}, {p.choice([1, -2])}, axis={axis})", f"ops.repeat({x}, 2, axis={axis})", f"ops.transpose({x}, {[0] + [int(a) + 1 for a in p.rng.permutation(rank - 1)]})",
        f"ops.take({x}, {p.choice(['[0]', '0', 'np.array([0, -1])'])}, axis={axis})", f"{x}[:, {p.choice(['::-1', ':1', '-1', '::2', 'None'])}]", f"{x}[..., {p.choice(['::-1', ':1', '-1', 'None', '::2'])}]", f"ops.normalize({x}, axis={p.choice([axis, -1])}{arguments(p, order=[1, 2])})",
        f"ops.norm({x}, axis={axis}{keep}{arguments(p, ord=[1, 2])})", f"ops.pad({x}, {[[0, 0]] * (rank - 1) + [[1, 2]]}{arguments(p, constant_values=[1., -2.])})", f"ops.tile({x}, {[1] * (rank - 1) + [2]})", f"ops.leaky_relu({x}{arguments(p, negative_slope=[.1, .5])})",
        f"ops.where({p.choice(p.inputs) if p.dtype(p.inputs[0]) == 'bool' else x + ' > 0'}, {x}, {p.choice([y, '0.', '1'])})", f"ops.cast({x}, {p.choice(['float16', 'float64', 'float32'])!r})", f"ops.zeros_like({x})", f"ops.ones_like({x}{arguments(p, dtype=INT32)})", f"ops.squeeze({x}{arguments(p, axis=[-1, 1])})",
        f"ops.moveaxis({x}, {axis}, {p.choice([1, -1])})", f"ops.reshape({x}, (-1, {int(np.prod(p.shape(x)[1:]))}))", f"ops.top_k({x}, 1)[0]", f"ops.einsum('b...,b...->b...', {x}, {y})", f"ops.matmul({x}, {y})", f"ops.tril({x}{arguments(p, k=[1, -1])})", f"ops.diff({x}, axis={axis})",
        f"ops.layer_normalization({x}{arguments(p, epsilon=[.1])})", f"ops.split({x}, [1], axis={axis})[1]", f"ops.average({x}, axis={axis})", f"ops.swapaxes({x}, 1, -1)", f"ops.elu({x}{arguments(p, alpha=[.5, 2.])})", f"ops.cumprod({x}, axis={axis})", f"ops.moments({x}, axes=[{axis}]{keep})[1]"])


def functions2(p, x):
    """tf.* between the layers of Keras 2."""
    rank = len(p.shape(x))
    axis, keep = p.rng.randint(1, rank), arguments(p, keepdims=[True])
    y = p.like(x)
    return p.choice([
        f"tf.reduce_{p.choice(['sum', 'mean', 'max', 'min', 'prod', 'logsumexp'])}({x}, axis={p.choice([axis, -1, [axis], None])}{keep})", f"tf.{p.choice(['nn.relu', 'nn.gelu', 'nn.silu', 'tanh', 'sin', 'cos', 'math.erf', 'square', 'abs', 'nn.softplus', 'sigmoid', 'negative', 'nn.relu6', 'nn.elu', 'nn.selu'])}({x})",
        f"tf.{p.choice(['add', 'subtract', 'multiply', 'maximum', 'minimum', 'math.squared_difference', 'math.atan2'])}({x}, {p.choice([y, y, '2.', '.5', '-1.5'])})", f"{x} * {p.choice(['2.', '.5', '-3.'])} + {p.choice([y, '1.'])}", f"tf.clip_by_value({x}, {p.choice(['-.5, .5', '0., 1.'])})",
        f"tf.concat([{x}, {y}], {p.choice([axis, -1])})", f"tf.stack([{x}, {y}], axis={p.choice([axis, -1])})", f"tf.expand_dims({x}, {p.choice([1, -1])})", f"tf.nn.{p.choice(['softmax', 'log_softmax'])}({x}, axis={p.choice([axis, -1])})", f"tf.reverse({x}, [{axis}])",
        f"tf.cumsum({x}, axis={axis}{arguments(p, exclusive=[True], reverse=[True])})", f"tf.roll({x}, {p.choice([1, -2])}, axis={axis})", f"tf.repeat({x}, 2, axis={axis})", f"tf.transpose({x}, {[0] + [int(a) + 1 for a in p.rng.permutation(rank - 1)]})", f"tf.gather({x}, {p.choice(['[0]', '0', '[0, 0]'])}, axis={axis})",
        f"{x}[:, {p.choice(['::-1', ':1', '-1', '::2', 'None'])}]", f"{x}[..., {p.choice(['::-1', ':1', '-1', 'None', '::2'])}]", f"tf.math.l2_normalize({x}, axis={p.choice([axis, -1])}{arguments(p, epsilon=[.1])})", f"tf.norm({x}, axis={axis}{keep}{arguments(p, ord=[1, 2])})",
        f"tf.pad({x}, {[[0, 0]] * (rank - 1) + [[1, 2]]}{arguments(p, constant_values=[1., -2.])})", f"tf.tile({x}, {[1] * (rank - 1) + [2]})", f"tf.nn.leaky_relu({x}{arguments(p, alpha=[.1, .5])})", f"tf.where({x} > 0, {x}, {p.choice([y, '0.'])})", f"tf.cast({x}, {p.choice(['float16', 'float64', 'float32'])!r})",
        f"tf.zeros_like({x})", f"tf.reshape({x}, [-1, {int(np.prod(p.shape(x)[1:]))}])", f"tf.reshape({x}, [tf.shape({x})[0], -1])", f"tf.math.top_k({x}, 1)[0]", f"tf.matmul({x}, {y}, transpose_b=True)", f"tf.split({x}, [1, -1], axis={axis})[1]", f"tf.nn.moments({x}, [{axis}]{keep})[1]",
        f"tf.tensordot({x}, np.ones(({p.shape(x)[-1]}, 2), 'float32'), 1)", f"tf.nn.bias_add({x}, np.arange({p.shape(x)[-1]}.).astype('float32'))", f"tf.sort({x}, axis={axis})", f"tf.unstack({x}, axis={axis})[0]", f"tf.strided_slice({x}, [0, 0], [2, 1], [1, 1])"])


def start(p):
    """The inputs, and values of other dtypes made float."""
    shape = p.choice([[12], [6, 4], [8, 7, 3], [6, 5], [4], [5, 5, 2]])
    for _ in range(int(p.choice([1, 1, 2]))):
        p.input(shape, "float32")
    kind = p.rng.rand()
    if kind < .12:
        p.input(shape, "int32")
        p.value(p.choice([f"ops.cast({p.inputs[-1]}, 'float32')", f"ops.multiply({p.inputs[-1]}, {p.inputs[0]})", f"{p.inputs[-1]} / 2"]) if hasattr(p.package, "ops") else f"tf.cast({p.inputs[-1]}, tf.float32)")
    elif kind < .22:
        p.input([6], "int32")
        p.value(f"L.Embedding(9, {p.rng.randint(2, 6)}{arguments(p, mask_zero=[True])})({p.inputs[-1]})")
    elif kind < .3:
        p.input([8, 7, 3], "uint8")
        # No Resizing: a call answers whole numbers, and predict() numbers between them.
        p.value(f"L.Rescaling(.01)({p.inputs[-1]})")


def step(p, functions):
    x = p.pick(dtypes=ANY if p.rng.rand() < .15 else FLOATS)
    if x is None:
        return
    rank, kind = len(p.shape(x)), p.rng.rand()
    own = {2: vectors, 3: sequences, 4: images}.get(rank)
    if rank < 2:
        return
    if kind < functions:
        p.value((functions3 if hasattr(p.package, "ops") else functions2)(p, x))
    elif kind < .85 and own and p.rng.rand() < .6:
        p.value(own(p, x))
    elif kind < .92:
        p.value(anywhere(p, x))
    elif kind < .96:  # a layer that is called twice
        name = f"l{len(p.lines)}"
        if p.add(name, f"{name} = L.Dense({p.rng.randint(1, 9)}{weights(p)})"):
            y = p.like(x)
            p.value(f"{name}({x})")
            p.value(f"{name}({y})")
    else:
        nested(p, x)


def nested(p, x):
    """A model as a layer, called once or twice."""
    shape, name = tuple(p.shape(x)[1:]), f"m{len(p.lines)}"
    if not p.add(f"{name}i", f"{name}i = L.Input({shape})"):
        return
    at = f"{name}i"
    inner = [f"L.Dense({p.rng.randint(1, 6)}{weights(p)})", "L.LayerNormalization()", f"L.Activation({p.choice(ACTIVATIONS)!r})", "L.BatchNormalization()"]
    for k in range(int(p.rng.randint(1, 4))):
        if p.add(f"{name}v{k}", f"{name}v{k} = {p.choice(inner)}({at})"):
            at = f"{name}v{k}"
    if p.rng.rand() < .3:
        if p.add(f"{name}s", f"{name}s = {at} * 2."):
            at = f"{name}s"
    if p.add(name, f"{name} = K.Model({name}i, {at})"):
        y = p.like(x)
        p.value(f"{name}({x})")
        if p.rng.rand() < .5:
            p.value(f"{name}({y})")


def random_program(package, rng):
    """(program, names of outputs)"""
    p = Program(package, rng)
    start(p)
    functions = p.choice([0., 0., .25, .5])
    for _ in range(int(rng.randint(2, 12))):
        step(p, functions)
    made = [n for n in p.values if n not in p.inputs]
    if not made:
        return p, []
    outputs = made[-1:] + [n for n in made[:-1] if rng.rand() < .15]
    return p, outputs


def only_layers(p, outputs):
    """Whether the model has no function between its layers."""
    text = "\n".join(text for _, text in needed(p, outputs))
    return "ops." not in text and "tf." not in text and " * " not in text and " / " not in text and "[" not in text.replace("([", "")


def needed(p, outputs):
    """The lines that make these values."""
    want, lines = set(outputs), []
    for name, text in reversed(p.lines):
        if name in want or name in p.inputs:
            lines.append((name, text))
            want |= set(re.findall(r"\b(?:v\d+|l\d+|m\d+(?:[ivs]\d*)?|in\d+)\b", text))
    return lines[::-1]
