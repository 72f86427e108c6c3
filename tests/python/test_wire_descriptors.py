"""Our .proto texts against the descriptors inside the packages clients use: everything ours has must be theirs too,
with the same name, number, type, label, oneof and packing. What theirs has beyond is skipped as unknown on the wire."""
import glob
import importlib
import os
import pkgutil
import subprocess

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

PROTO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../proto")

# Packages that clients install -> the modules that register their descriptors.
REFERENCES = ("tensorflow_serving", "grpc_health.v1.health_pb2", "grpc_reflection.v1alpha.reflection_pb2",
              "tensorflow.core.framework", "tensorflow.core.protobuf", "tensorflow.core.example",
              "tritonclient.grpc.service_pb2")


# Ours alone, or in files of the server that no client package carries.
WITHOUT_REFERENCE = ("floe/", "tensorflow_serving/servables/", "tensorflow_serving/config/ssl_config",
                     "tensorflow_serving/config/monitoring_config")


def our_files():
    return sorted(os.path.relpath(p, PROTO) for p in glob.glob(PROTO + "/**/*.proto", recursive=True))


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    out = str(tmp_path_factory.mktemp("wire") / "set")
    subprocess.run([os.environ.get("FLOE_PROTOC", "protoc"), "-I", PROTO, "--include_imports",
                    "--descriptor_set_out", out, *our_files()], check=True)
    with open(out, "rb") as f:
        files = descriptor_pb2.FileDescriptorSet.FromString(f.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    return pool


@pytest.fixture(scope="module")
def theirs():
    for name in REFERENCES:
        module = importlib.import_module(name)
        for info in pkgutil.walk_packages(getattr(module, "__path__", []), name + "."):
            if info.name.endswith("_pb2"):
                importlib.import_module(info.name)
    return descriptor_pool.Default()


def field_facts(field):
    """What decides a field's bytes, and what decides its name in code."""
    label = "repeated" if field.is_repeated else "required" if field.is_required else "optional"
    type_name = (field.message_type or field.enum_type)
    oneof = field.containing_oneof
    return {
        "number": field.number,
        "type": field.type,
        "of": type_name.full_name if type_name else "",
        "label": label,
        "packed": field.is_packed,
        "presence": field.has_presence,
        "oneof": oneof.name if oneof else "",
    }


def compare_message(mine, their_pool, wrong):
    try:
        their = their_pool.FindMessageTypeByName(mine.full_name)
    except KeyError:
        wrong.append(f"message {mine.full_name}: theirs has none of this name")
        return
    if mine.GetOptions().map_entry != their.GetOptions().map_entry:
        wrong.append(f"message {mine.full_name}: map entry in one only")
    for field in mine.fields:
        other = their.fields_by_name.get(field.name)
        if other is None:
            wrong.append(f"{mine.full_name}.{field.name}: theirs has no such field")
        elif field_facts(field) != field_facts(other):
            wrong.append(f"{mine.full_name}.{field.name}: {field_facts(field)}, theirs {field_facts(other)}")
    for nested in mine.nested_types:
        compare_message(nested, their_pool, wrong)
    for enum in mine.enum_types:
        compare_enum(enum, their_pool, wrong)


def compare_enum(mine, their_pool, wrong):
    try:
        their = their_pool.FindEnumTypeByName(mine.full_name)
    except KeyError:
        wrong.append(f"enum {mine.full_name}: theirs has none of this name")
        return
    values = {v.name: v.number for v in their.values}
    for value in mine.values:
        if values.get(value.name) != value.number:
            wrong.append(f"{mine.full_name}.{value.name} = {value.number}, theirs {values.get(value.name)}")


def compare_service(mine, their_pool, wrong):
    try:
        their = their_pool.FindServiceByName(mine.full_name)
    except KeyError:
        wrong.append(f"service {mine.full_name}: theirs has none of this name")
        return
    facts = lambda m: (m.input_type.full_name, m.output_type.full_name, m.client_streaming, m.server_streaming)
    for method in mine.methods:
        other = their.methods_by_name.get(method.name)
        if other is None or facts(method) != facts(other):
            wrong.append(f"{method.full_name}{facts(method)}, theirs {other and facts(other)}")


def test_there_are_files():
    files = our_files()
    for needed in ("tensorflow/core/framework/graph.proto", "tensorflow_serving/apis/predict.proto",
                   "tensorflow_serving/apis/prediction_service.proto", "grpc/health/v1/health.proto"):
        assert needed in files


@pytest.mark.parametrize("file", [f for f in our_files() if not f.startswith(WITHOUT_REFERENCE)])
def test_same_as_theirs(file, ours, theirs):
    mine = ours.FindFileByName(file)
    wrong = []
    for message in mine.message_types_by_name.values():
        compare_message(message, theirs, wrong)
    for enum in mine.enum_types_by_name.values():
        compare_enum(enum, theirs, wrong)
    for service in mine.services_by_name.values():
        compare_service(service, theirs, wrong)
    assert not wrong, "\n".join(wrong)
