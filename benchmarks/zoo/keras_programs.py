"""keras 3 on its JAX backend: models as functions of their variables (`stateless_call`)."""

from __future__ import annotations

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

from collections.abc import Callable

import jax
import keras
import numpy as np

from .programs import Made, Program, floats


def _inference(build: Callable[[], keras.Model], *inputs: np.ndarray) -> Callable[[], Made]:
    def make() -> Made:
        keras.utils.set_random_seed(0)
        model = build()
        model(*inputs)  # creates the variables
        trainable = [np.asarray(v) for v in model.trainable_variables]
        others = [np.asarray(v) for v in model.non_trainable_variables]

        def predict(trainable, others, *inputs):
            return model.stateless_call(trainable, others, *inputs, training=False)[0]

        return predict, (trainable, others, *inputs)

    return make


def _sequential(*layers: keras.Layer) -> keras.Model:
    return keras.Sequential(list(layers))


def _dense() -> keras.Model:
    dense = keras.layers.Dense
    return _sequential(dense(64, activation="relu"), keras.layers.Dropout(0.5), dense(10, activation="softmax"))


def _convolutional() -> keras.Model:
    of = keras.layers
    return _sequential(
        of.Conv2D(16, 3, padding="same"), of.BatchNormalization(), of.ReLU(), of.MaxPooling2D(),
        of.SeparableConv2D(32, 3), of.GlobalAveragePooling2D(), of.Dense(5),
    )  # fmt: skip


def _recurrent() -> keras.Model:
    of = keras.layers
    return _sequential(of.Embedding(200, 16), of.Bidirectional(of.LSTM(16)), of.Dense(1, activation="sigmoid"))


def _text_convolution() -> keras.Model:
    of = keras.layers
    return _sequential(of.Embedding(200, 16), of.Conv1D(32, 5, activation="relu"), of.GlobalMaxPooling1D(), of.Dense(2))


def _encoder() -> keras.Model:
    tokens = keras.Input((12, 32))
    attended = keras.layers.MultiHeadAttention(4, 8)(tokens, tokens)
    x = keras.layers.LayerNormalization()(tokens + attended)
    return keras.Model(tokens, keras.layers.Dense(32, activation="gelu")(x))


def training_step() -> Made:
    keras.utils.set_random_seed(0)
    model, rule = _dense(), keras.optimizers.Adam(1e-3)
    x, labels = floats(16, 20), np.arange(16, dtype=np.int32) % 10
    model(x)
    rule.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy()

    def step(trainable, others, state, x, labels):
        def loss(trainable):
            predicted, changed = model.stateless_call(trainable, others, x, training=False)
            return loss_of(labels, predicted), changed

        (value, others), grads = jax.value_and_grad(loss, has_aux=True)(trainable)
        trainable, state = rule.stateless_apply(state, grads, trainable)
        return trainable, others, state, value

    variables = [[v.value for v in group] for group in (model.trainable_variables, model.non_trainable_variables)]
    return step, (*variables, [v.value for v in rule.variables], x, labels)


def _application(name: str, size: int) -> Callable[[], Made]:
    def build() -> keras.Model:
        return getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=10)

    return _inference(build, np.abs(floats(1, size, size, 3)))


_TOKENS = np.random.default_rng(0).integers(0, 200, (4, 20)).astype(np.int32)
PROGRAMS = (
    Program("dense classifier", _inference(_dense, floats(16, 20))),
    Program("convolutions, pooling, batch norm", _inference(_convolutional, floats(2, 28, 28, 3))),
    Program("bidirectional LSTM", _inference(_recurrent, _TOKENS)),
    Program("convolution over text", _inference(_text_convolution, _TOKENS)),
    Program("attention encoder", _inference(_encoder, floats(2, 12, 32))),
    Program("training step with Adam", training_step, 1e-3),
    Program("MobileNetV2, 96 x 96", _application("MobileNetV2", 96), 1e-3),
    Program("EfficientNetB0, 224 x 224", _application("EfficientNetB0", 224), 1e-3),
)
