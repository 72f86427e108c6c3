"""Requests of the RPCs, and what their replies mean. Each request function returns the RPC with its message."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from . import _tensor as tensor
from . import _wire as wire
from ._tensor import Array

T = TypeVar("T")

_PREDICTION = "/tensorflow.serving.PredictionService/"


@dataclass(frozen=True)
class TensorSpec:
    """An input or output. `dtype` is NumPy's name, or "string"; None in `shape` is a dim that requests decide, None
    in its place an unknown rank."""

    dtype: str
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True)
class Signature:
    """What a model takes and gives."""

    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]
    method: str


@dataclass(frozen=True)
class Metadata:
    """A version's signatures, by name."""

    name: str
    version: int
    signatures: Mapping[str, Signature]


@dataclass(frozen=True)
class VersionStatus:
    """`state` is START, LOADING, AVAILABLE, UNLOADING or END; `message` says why a version failed."""

    version: int
    state: str
    message: str


@dataclass(frozen=True)
class ModelState:
    """`state` is READY, LOADING, UNLOADING or UNAVAILABLE; `reason` says why a version failed."""

    name: str
    version: int
    state: str
    reason: str


class Outputs(dict[str, Array]):
    """Arrays by the outputs' names, and the version that computed them."""

    version: int = 0


@dataclass(frozen=True)
class Call(Generic[T]):
    """An RPC: its path and message, and what its reply means."""

    path: str
    request: bytes
    read: Callable[[memoryview], T]
    model: str = ""


def _model_spec(model: str, version: int | None, label: str, signature: str = "") -> list[wire.Piece]:
    if version is not None and label:
        raise ValueError("give a version or a label, not both")
    spec = wire.text_field(1, model)
    if version is not None:
        spec += wire.field(2, wire.number_field(1, version))
    return spec + wire.text_field(3, signature) + wire.text_field(4, label)


def predict(model: str, version: int | None, label: str, signature: str, inputs: Mapping[str, tuple[Array, str]],
            outputs: Iterable[str]) -> Call[Outputs]:
    """`inputs`: an array and its type's name, "" for that of the array."""
    pieces = wire.field(1, _model_spec(model, version, label, signature))
    for name, (array, dtype) in inputs.items():
        pieces += wire.entry(2, name, tensor.encode(array, dtype))
    for name in outputs:
        pieces += wire.field(3, [name.encode()])
    return Call(_PREDICTION + "Predict", b"".join(pieces), _read_outputs, model)


def _read_outputs(reply: memoryview) -> Outputs:
    outputs = Outputs((name, tensor.decode(view)) for name, view in wire.entries(reply, 1))
    for spec in wire.messages(reply, 2):
        outputs.version = _version_of(spec)
    return outputs


def _version_of(spec: memoryview) -> int:
    version = 0
    for wrapped in wire.messages(spec, 2):
        for number, kind, value in wire.fields(wrapped):
            version = wire.number(value, kind) if number == 1 else version
    return version


def metadata(model: str, version: int | None, label: str) -> Call[Metadata]:
    pieces = wire.field(1, _model_spec(model, version, label)) + wire.text_field(2, "signature_def")
    return Call(_PREDICTION + "GetModelMetadata", b"".join(pieces), _read_metadata, model)


def _read_metadata(reply: memoryview) -> Metadata:
    name, version, signatures = "", 0, {}
    for spec in wire.messages(reply, 1):
        name = "".join(wire.text(part) for part in wire.messages(spec, 1))
        version = _version_of(spec)
    for key, packed in wire.entries(reply, 2):
        for signature_map in wire.messages(packed, 2) if key == "signature_def" else ():
            signatures.update({key: _signature(view) for key, view in wire.entries(signature_map, 1)})
    return Metadata(name, version, signatures)


def _signature(view: memoryview) -> Signature:
    def specs(number: int) -> dict[str, TensorSpec]:
        return {key: _tensor_spec(info) for key, info in sorted(wire.entries(view, number))}
    return Signature(specs(1), specs(2), "".join(wire.text(part) for part in wire.messages(view, 3)))


def _tensor_spec(view: memoryview) -> TensorSpec:
    dtype, shape = 0, ()  # type: tuple[int, tuple[int | None, ...] | None]
    for number, kind, value in wire.fields(view):
        if number == 2:
            dtype = wire.number(value, kind)
        elif number == 3 and kind == wire.BYTES:
            shape = tensor.decode_shape(value)
    return TensorSpec(tensor.type_name(dtype), shape)


_STATES = {10: "START", 20: "LOADING", 30: "AVAILABLE", 40: "UNLOADING", 50: "END"}


def status(model: str, version: int | None, label: str) -> Call[list[VersionStatus]]:
    pieces = wire.field(1, _model_spec(model, version, label))
    return Call("/tensorflow.serving.ModelService/GetModelStatus", b"".join(pieces), _read_status, model)


def _read_status(reply: memoryview) -> list[VersionStatus]:
    return [_version_status(view) for view in wire.messages(reply, 1)]


def _version_status(view: memoryview) -> VersionStatus:
    numbers, message = {1: 0, 2: 0}, ""
    for number, kind, value in wire.fields(view):
        if number in numbers:
            numbers[number] = wire.number(value, kind)
        elif number == 3 and kind == wire.BYTES:
            message = "".join(wire.text(part) for part in wire.messages(value, 2))
    return VersionStatus(numbers[1], _STATES.get(numbers[2], "UNKNOWN"), message)


def models() -> Call[list[ModelState]]:
    return Call("/inference.GRPCInferenceService/RepositoryIndex", b"", _read_models)


def _read_models(reply: memoryview) -> list[ModelState]:
    return [_model_state(view) for view in wire.messages(reply, 1)]


def _model_state(view: memoryview) -> ModelState:
    texts = {number: wire.text(value) for number, kind, value in wire.fields(view) if kind == wire.BYTES}
    version = texts.get(2, "")
    return ModelState(texts.get(1, ""), int(version) if version.isdecimal() else 0, texts.get(3, ""), texts.get(4, ""))


def health(model: str) -> Call[bool]:
    request = wire.text_field(1, f"model/{model}" if model else "")
    return Call("/grpc.health.v1.Health/Check", b"".join(request), _read_health, model)


def _read_health(reply: memoryview) -> bool:
    return any(number == 1 and wire.number(value, kind) == 1 for number, kind, value in wire.fields(reply))


def is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "__array__")
