"""docs/ops.md says of every op of the installed TensorFlow that it is supported, or why not."""
import importlib.util
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def script():
    spec = importlib.util.spec_from_file_location("list_tf_ops", ROOT / "scripts" / "list_tf_ops.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_raw_op_is_supported_or_refused_with_a_reason():
    ops = script()
    supported, refused = ops.known_ops()
    unknown = [op for op in ops.raw_ops() if ops.verdict(op, supported, refused) is None]
    assert not unknown, f"neither supported nor refused (model/refused_ops.cc): {unknown}"


def test_supported_ops_are_tensorflows():
    ops = script()
    supported, _ = ops.known_ops()
    from tensorflow.python.framework import op_def_registry

    unknown = [op for op in sorted(supported) if op_def_registry.get(op) is None]
    assert not unknown, f"no ops of TensorFlow: {unknown}"


def test_public_functions_emit_ops_of_the_document():
    # A process of its own: most of TensorFlow's functions are traced.
    script = ROOT / "scripts" / "trace_tf_ops.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
