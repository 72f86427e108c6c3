"""bench/gpu.py without a GPU: over a floectl and an ONNX Runtime that only give times."""
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bench/gpu.py"

FLOECTL = """\
    #!{python}
    import json, sys
    assert sys.argv[1] == "bench" and sys.argv[sys.argv.index("--device") + 1] == "cuda:3", sys.argv
    if "broken" in sys.argv[2]:
        sys.exit("broken: no such device")
    print(json.dumps({{"p50_us": 10.0, "p99_us": 12.0, "load_ms": 1.0, "peak_rss_bytes": 2**20}}))
    """
ONNXRUNTIME = """\
    import time
    class InferenceSession:
        def __init__(self, path, providers):
            self.provider, options = providers[0]
            assert path.endswith("model.onnx") and options["use_tf32"] in "01"
            self.tf32 = options["use_tf32"] == "1"
        def get_providers(self):
            return ["CPUExecutionProvider" if self.tf32 else self.provider]
        def get_inputs(self):
            return [type("Input", (), {"name": "x:0"})]
        def run(self, outputs, values):
            assert list(values) == ["x:0"]
            time.sleep(0.002)
    """


@pytest.fixture
def folder(tmp_path):
    """`models`, `build` with a floectl, and `packages` with an ONNX Runtime whose TF32 provider does not load."""
    for name in ("tiny_dense", "broken"):
        model = tmp_path / "models" / name
        model.mkdir(parents=True)
        (model / "graph.pb").write_bytes(b"")
        (model / "model.onnx").write_bytes(b"")
        np.savez(model / "io.npz", in__x=np.ones((2, 4), np.float32), out__y=np.ones((2, 1), np.float32))
    (tmp_path / "build").mkdir()
    floectl = tmp_path / "build" / "floectl"
    floectl.write_text(textwrap.dedent(FLOECTL).format(python=sys.executable))
    floectl.chmod(0o755)
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "onnxruntime.py").write_text(textwrap.dedent(ONNXRUNTIME))
    return tmp_path


def gpu(folder, *args):
    env = {**os.environ, "PYTHONPATH": str(folder / "packages")}
    return subprocess.run([sys.executable, SCRIPT, "run", folder / "models", "--build", folder / "build", "--device", "3", *args],
                          capture_output=True, text=True, env=env, timeout=60, check=False)


def test_every_engine_has_its_time_or_its_error(folder):
    done = gpu(folder, "--quick", "--json", folder / "out.json")
    assert done.returncode == 1, done.stderr  # one model has no time
    found = json.loads((folder / "out.json").read_text())
    rows = {(row["model"], row["batch"]): row for row in found["rows"]}
    assert set(rows) == {(name, batch) for name in ("tiny_dense", "broken") for batch in (1, 32)}
    row = rows["tiny_dense", 1]
    assert row["floe"]["p50_us"] == 10 and row["ort"]["p50_us"] > 2000
    assert row["ratio"] == pytest.approx(row["ort"]["p50_us"] / 10)
    assert row["ort_tf32"] is None and "computes on the CPU" in row["errors"]["ort_tf32"]
    assert "no such device" in rows["broken", 1]["errors"]["floe"] and rows["broken", 1]["ratio"] is None
    assert found["missing"]["torch"] and "torch is left out" in done.stdout
    assert "resnet50 is left out" in done.stdout
    figures = {f["figure"]: f for f in found["figures"]}
    assert figures["tiny_dense batch 1: us"] == {"figure": "tiny_dense batch 1: us", "wanted": 15.0, "measured": 10.0, "met": True}
    assert figures["resnet50 batch 64: ratio to ort"]["met"] is None
    assert "tiny_dense batch 1: us: wanted 15.0, measured 10.0: met" in done.stdout


def test_a_dry_run_starts_nothing(folder):
    (folder / "build" / "floectl").unlink()
    done = gpu(folder, "--dry-run")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "--device cuda:3" in line]
    assert len(lines) == 4 and lines[0].endswith("--fetch y against ort ort_tf32") and "tiny_dense" in lines[0]
