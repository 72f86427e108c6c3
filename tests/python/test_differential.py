"""Random graphs through floe and TensorFlow (tests/differential). FLOE_DIFFERENTIAL_MINUTES says for how long."""
import os
import re
import subprocess
import sys

from floed import BUILD, ROOT

sys.path.insert(0, os.path.join(ROOT, "tests/differential"))
RUNNER = os.path.join(BUILD, "differential_runner")


def test_random_graphs_give_tensorflows_answers():
    minutes = os.environ.get("FLOE_DIFFERENTIAL_MINUTES") or "0.5"
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tests/differential/differential.py"), "--minutes", minutes,
                           "--rounds", "80", "--runner", RUNNER], capture_output=True, text=True, check=False,
                          # With oneDNN, a convolution that leaves no rows answers with what was in memory.
                          env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": "0"})
    print(done.stdout[-20000:])
    assert done.returncode == 0, done.stderr[-2000:]


def test_random_saved_keras_models_give_keras_answers():
    minutes = os.environ.get("FLOE_KERAS_MINUTES") or "0.5"
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tests/differential/keras_saved.py"), "--minutes", minutes,
                           "--models", "400"], capture_output=True, text=True, check=False)
    print(done.stdout[-20000:])
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_wrong_answer_of_a_saved_model_is_found_and_made_small(monkeypatch):
    import keras
    import keras_files
    import keras_programs
    import keras_saved
    import numpy as np
    case = keras_saved.Case(keras, "1", 0, "keras")
    case.program = keras_programs.Program(keras, np.random.RandomState(1))
    case.program.input([4], "float32")
    first = case.program.value("L.Dense(3)(in0)")
    last = case.program.value(f"L.ReLU()({first})")
    case.outputs = [last]
    assert keras_saved.tried(case, case.outputs) == ("right", "")
    run = keras_files.run
    monkeypatch.setattr(keras_files, "run", lambda *args: [a + 1 for a in run(*args)])
    assert keras_saved.tried(case, case.outputs)[0] == "WRONG"
    assert keras_saved.minimised(case, "WRONG") == [first]


def test_a_wrong_answer_is_found_and_made_small(tmp_path):
    import differential
    made = differential.make("1", "elementwise", 3)
    right = differential.text_of("right", made)
    lines = right.replace("case right", "case wrong").split("\n")
    # "want name dtype shape values...": an empty tensor has no value to change, and 7 is no bool.
    last = max(i for i, line in enumerate(lines) if line.startswith("want ") and len(line.split()) > 4 and " bool " not in line)
    lines[last] = re.sub(r"\S+$", lambda m: "1" if m[0] in ("0", "7") else "7", lines[last])
    failed = differential.Runner(RUNNER, tmp_path).run([right, "\n".join(lines)])
    assert "right" not in failed
    assert failed["wrong"][0][0] == "as it is"
