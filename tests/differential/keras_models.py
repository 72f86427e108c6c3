"""Random Keras models, frozen as TensorFlow's users freeze them."""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

import harness


class KERAS:
    """A frozen model with an input; the interface of Graph as far as the driver uses it."""

    def __init__(self, rng):
        self.rng = rng
        tf.keras.backend.clear_session()
        tf.keras.utils.set_random_seed(int(rng.randint(1 << 30)))
        shape = [[12], [9, 4], [8, 8, 3], [6, 5]][int(rng.randint(4))]
        inputs = tf.keras.Input(shape)
        self.shape = shape
        x, outputs = inputs, []  # after each layer
        for _ in range(int(rng.randint(1, 6))):
            x = self.layer(x)
            outputs.append(x)
        if rng.rand() < 0.5 and len(x.shape) > 2:
            x = tf.keras.layers.Flatten()(x)
        if rng.rand() < 0.5:
            x = tf.keras.layers.Dense(int(rng.randint(1, 6)), activation="softmax")(x)
        outputs.append(x)
        self.inputs, self.outputs = inputs, outputs
        model = tf.keras.Model(inputs, x)
        for weight in model.weights:  # moving averages and the like are not left at 0 and 1
            if weight.dtype == "float32":
                weight.assign(weight + rng.uniform(0, 0.3, weight.shape))
        self.array = rng.uniform(-1, 1, [int(rng.randint(1, 5))] + shape).astype("float32")

    def layer(self, x):
        layers, rng = tf.keras.layers, self.rng
        rank, units = len(x.shape), int(rng.randint(1, 9))
        activation = str(rng.choice(["relu", "tanh", "sigmoid", "gelu", "elu", "linear", "swish"]))
        anywhere = [layers.Dense(units, activation=activation), layers.LayerNormalization(), layers.BatchNormalization(),
                    layers.Dropout(0.3), layers.Activation(activation), layers.LeakyReLU(), layers.PReLU(),
                    layers.UnitNormalization()]
        if rank == 3:
            choices = anywhere + [
                layers.Conv1D(units, int(rng.randint(1, 4)), padding="same", activation=activation),
                layers.Conv1D(units, 2, padding="causal", dilation_rate=2), layers.LSTM(units, return_sequences=bool(rng.randint(2))),
                layers.GRU(units, return_sequences=bool(rng.randint(2))), layers.SimpleRNN(units, return_sequences=True),
                layers.Bidirectional(layers.LSTM(units, return_sequences=True)), layers.MaxPooling1D(2, padding="same"),
                layers.GlobalAveragePooling1D(), layers.TimeDistributed(layers.Dense(units)), layers.UpSampling1D(2),
                layers.ZeroPadding1D(1), layers.Permute([2, 1]), layers.AveragePooling1D(2)]
            if rng.rand() < 0.15:
                return layers.MultiHeadAttention(2, 3)(x, x)
        elif rank == 4:
            choices = anywhere + [
                layers.Conv2D(units, int(rng.randint(1, 4)), strides=int(rng.randint(1, 3)), padding="same", activation=activation),
                layers.DepthwiseConv2D(3, padding="same"), layers.SeparableConv2D(units, 3, padding="same"),
                layers.Conv2DTranspose(units, 3, strides=2, padding="same"), layers.MaxPooling2D(2, padding="same"),
                layers.AveragePooling2D(2, padding="same"), layers.GlobalMaxPooling2D(), layers.UpSampling2D(2),
                layers.Conv2D(units, 3, dilation_rate=2, padding="same"), layers.GroupNormalization(1),
                layers.Cropping2D(1) if x.shape[1] and x.shape[1] > 3 and x.shape[2] > 3 else layers.ReLU()]
        else:
            choices = anywhere + [layers.Reshape([-1, 1]), layers.RepeatVector(3)]
        return choices[int(rng.randint(len(choices)))](x)

    def case_text(self, name, last):
        """The case of the layers up to number `last`; None: the whole model."""
        model = tf.keras.Model(self.inputs, self.outputs[-1 if last is None else last])
        concrete = tf.function(lambda t: model(t, training=False)).get_concrete_function(
            tf.TensorSpec([None] + self.shape, tf.float32))
        frozen = convert_variables_to_constants_v2(concrete)
        graph_def, taken, given = frozen.graph.as_graph_def(), frozen.inputs[0].name, frozen.outputs[0].name

        def build(enter):
            fed = enter("x", harness.Feed(self.array, [None] + self.shape))
            return tf.import_graph_def(graph_def, {taken: fed}, [given], name="")
        return harness.case_text(name, build, 2e-4, 2e-4, None, None, ())
