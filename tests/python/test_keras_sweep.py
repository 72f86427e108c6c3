"""Functions of keras.ops and tf.*, and layers, with arguments off their defaults (keras_sweep.py).

The first case of each and one in FLOE_SWEEP_EVERY of the others are run; 1 runs all.
"""
import os

import keras
import pytest

import keras_sweep

EVERY = int(os.environ.get("FLOE_SWEEP_EVERY") or 60)


@pytest.mark.parametrize("kind", ["ops", "layers", "layers2", "tf"])
def test_outcomes_are_those_of_the_table(kind):
    cases = keras_sweep.sample(keras_sweep.all_cases([kind]), EVERY)
    found = keras_sweep.run(cases)
    news = keras_sweep.news(found, keras_sweep.known())
    print("\n".join(news))
    assert len(found) > 100
    assert not news


def test_everything_has_a_case():
    assert keras_sweep.missing(["ops", "layers", "layers2"]) == []


# Not as Keras, and why that stays.
KNOWN = {
    "ops ops.argsort(z(4))": "NaN has no order; TopKV2 has it elsewhere in TensorFlow",
    "ops ops.eigh(spd(3))": "an eigenvector of the other sign is one as well",
    "ops ops.polar(p(4), f(4))": "one unit in the last place of a product",
}


def test_the_table_has_no_wrong_answer():
    wrong = [line for line, outcome in keras_sweep.known().items() if outcome in ("WRONG", "crash")]
    assert sorted(wrong) == sorted(KNOWN)


def test_a_wrong_answer_is_news():
    found = keras_sweep.run([("ops", "add", keras, "ops.add(f(4), 2)")])
    assert keras_sweep.news(found, {}) == []
    assert keras_sweep.news({("ops", "ops.add(f(4), 2)"): keras_sweep.outcome_of([keras.ops.ones(3).numpy()], [keras.ops.zeros(3).numpy()])}, {})
    assert keras_sweep.news(found, {"ops ops.add(f(4), 2)": "refused"})
