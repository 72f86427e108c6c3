"""Graphs as training leaves them: fed inside, or with parts that no request can bring."""
import contextlib

import numpy as np
from floed import Floed
from tensorflow_serving.apis import get_model_status_pb2

STATUS = get_model_status_pb2.ModelVersionStatus

PIPELINE = """
node { name: "iterator" op: "IteratorV2" }
node { name: "next" op: "IteratorGetNext" input: "iterator"
  attr { key: "output_types" value { list { type: DT_INT64 type: DT_FLOAT } } } }
node { name: "y" op: "Neg" input: "next:1" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "z" op: "Neg" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
"""

NEGATION = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
"""

# What freezing leaves of a model with a lookup table.
WITHOUT_TABLE = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_INT64 } } }
node { name: "none" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0 } } } }
node { name: "table_handle" op: "Placeholder" attr { key: "dtype" value { type: DT_RESOURCE } }
  attr { key: "shape" value { shape { } } } }
node { name: "y" op: "LookupTableFindV2" input: "table_handle" input: "x" input: "none"
  attr { key: "Tin" value { type: DT_INT64 } } attr { key: "Tout" value { type: DT_FLOAT } } }
"""


def write(folder, graph):
    folder.mkdir(parents=True)
    (folder / "graph.pbtxt").write_text(graph)


def test_tensors_inside_the_graph_are_fed(tmp_path):
    write(tmp_path / "models" / "1", PIPELINE)
    config = tmp_path / "floe.yaml"
    config.write_text(f"""
models:
  - name: plain
    base_path: {tmp_path}/models
  - name: chosen
    base_path: {tmp_path}/models
    signature: {{inputs: {{middle: "y"}}, outputs: {{z: "z"}}}}
""")
    with contextlib.closing(Floed(f"--config={config}")) as server, server.client() as client:
        reply = client.predict("plain", {"next:1": np.array([1, -2], np.float32)})
        assert list(reply.outputs["z"].float_val) == [1, -2]
        reply = client.predict("chosen", {"middle": np.array([1, -2], np.float32)})
        assert list(reply.outputs["z"].float_val) == [-1, 2]


def test_a_version_without_its_table_is_an_error_of_that_version(tmp_path):
    write(tmp_path / "m" / "1", NEGATION)
    with contextlib.closing(Floed(f"--model_base_path={tmp_path}/m", "--model_name=m",
                                  "--file_system_poll_wait_seconds=1")) as server, server.client() as client:
        def state(version):
            request = get_model_status_pb2.GetModelStatusRequest()
            request.model_spec.name = "m"
            reply = client.models.GetModelStatus(request, timeout=60)
            return next((s for s in reply.model_version_status if s.version == version), STATUS())
        write(tmp_path / "m" / "2", WITHOUT_TABLE)
        server.wait_until(lambda: state(2).state == STATUS.END)
        message = state(2).status.error_message
        assert "'table_handle'" in message and "table" in message and "'y' (LookupTableFind" in message
        assert list(client.predict("m", {"x": np.array([1], np.float32)}).outputs["y"].float_val) == [-1]
