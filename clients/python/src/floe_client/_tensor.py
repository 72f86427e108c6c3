"""NumPy's arrays as tensorflow.TensorProto, and back."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _wire as wire

Array = np.ndarray[Any, np.dtype[Any]]

STRING, BFLOAT16 = 7, 14

# TensorFlow's number of a type -> its name here, the dtype of its bytes, and the field with the values of replies
# that have no tensor_content.
_TYPES = {
    1: ("float32", "<f4", 5), 2: ("float64", "<f8", 6), 3: ("int32", "<i4", 7), 4: ("uint8", "u1", 7), 5: ("int16", "<i2", 7),
    6: ("int8", "i1", 7), 8: ("complex64", "<c8", 9), 9: ("int64", "<i8", 10), 10: ("bool", "?", 11), 11: ("qint8", "i1", 7),
    12: ("quint8", "u1", 7), 13: ("qint32", "<i4", 7), 14: ("bfloat16", "<u2", 13), 15: ("qint16", "<i2", 7),
    16: ("quint16", "<u2", 7), 17: ("uint16", "<u2", 7), 18: ("complex128", "<c16", 12), 19: ("float16", "<f2", 13),
    22: ("uint32", "<u4", 16), 23: ("uint64", "<u8", 17),
}
_NUMBERS = {name: number for number, (name, _, _) in _TYPES.items()}
_FIXED_FIELDS = (5, 6, 9, 12)  # floats, doubles, and complex numbers as pairs of them
_HALF_FIELD, _STRING_FIELD = 13, 8


def type_name(number: int) -> str:
    """Such as "float32", "bfloat16", "string"."""
    number = number - 100 if number > 100 else number  # a reference
    if number == STRING:
        return "string"
    return _TYPES[number][0] if number in _TYPES else f"type {number}"


def _bfloat16() -> np.dtype[Any]:
    try:
        import ml_dtypes  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise TypeError("bfloat16 needs the package ml_dtypes: pip install ml_dtypes") from None
    dtype: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return dtype


def as_array(value: Any, name: str) -> Array:
    """`value` as an array of the type `name`; "": of its own."""
    if name == "string":
        return np.asarray(value, object)
    if name == "bfloat16":
        return np.asarray(value).astype(_bfloat16())
    return np.asarray(value, _TYPES[_NUMBERS[name]][1]) if name in _NUMBERS else np.asarray(value)


def encode(array: Array, name: str = "") -> list[wire.Piece]:
    """A TensorProto of the array. `name`: its type, where it is not that of the array, as for quantised ones."""
    dims: list[wire.Piece] = []
    for size in array.shape:
        dims += wire.field(2, wire.number_field(1, size))
    if array.dtype.kind in "OSU":
        head = wire.number_field(1, STRING) + wire.field(2, dims)
        for text in array.ravel().tolist():
            head += wire.field(_STRING_FIELD, [_bytes_of(text)])
        return head
    number = _NUMBERS.get(name or array.dtype.name)
    if number is None:
        raise TypeError(f"arrays of {array.dtype} cannot be sent; convert them, as by array.astype('float32')")
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1)
    content = little.view(np.uint8).data  # bfloat16 has no buffer of its own
    return wire.number_field(1, number) + wire.field(2, dims) + wire.field(4, [content])


def _bytes_of(text: object) -> bytes:
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise TypeError(f"a string is str or bytes, not {type(text).__name__}")


def decode_shape(view: memoryview) -> tuple[int | None, ...] | None:
    """Of a TensorShapeProto; None: a dim, or the rank, that is not known."""
    dims: list[int | None] = []
    for number, kind, value in wire.fields(view):
        if number == 3 and wire.number(value, kind):
            return None
        if number == 2 and kind == wire.BYTES:
            size = 0
            for inner, inner_kind, part in wire.fields(value):
                if inner == 1:
                    size = wire.number(part, inner_kind)
            dims.append(None if size < 0 else size)
    return tuple(dims)


def decode(view: memoryview) -> Array:
    """The array of a TensorProto. It is read-only, and has the message's memory where that is aligned."""
    number, content = 0, memoryview(b"")
    shape: tuple[int | None, ...] | None = ()
    lists: dict[int, list[memoryview]] = {}
    for found, kind, value in wire.fields(view):
        if found == 1:
            number = wire.number(value, kind)
        elif found == 2 and kind == wire.BYTES:
            shape = decode_shape(value)
        elif found == 4 and kind == wire.BYTES:
            content = value
        else:
            lists.setdefault(found, []).append(value)
    if shape is None or None in shape:
        raise wire.DecodeError("a tensor of the reply has no whole shape")
    whole = tuple(size or 0 for size in shape)
    if number == STRING:
        array = _strings(lists.get(_STRING_FIELD, []), whole)
    elif number in _TYPES:
        array = _numbers(number, content, lists, whole)
    else:
        raise wire.DecodeError(f"a tensor of the reply is of {type_name(number)}, which has no array")
    array.flags.writeable = False
    return array


def _strings(values: list[memoryview], shape: tuple[int, ...]) -> Array:
    array = np.empty(len(values), object)
    array[:] = [bytes(value) for value in values]
    return _shaped(array, shape)


def _numbers(number: int, content: memoryview, lists: dict[int, list[memoryview]], shape: tuple[int, ...]) -> Array:
    _, stored, field = _TYPES[number]
    dtype = np.dtype(stored)
    if len(content):
        if len(content) != math.prod(shape) * dtype.itemsize:
            raise wire.DecodeError(f"a {type_name(number)} tensor of shape {shape} has {len(content)} bytes")
        array = np.frombuffer(content, dtype)
        array = array if array.flags.aligned else array.copy()
    else:
        array = _listed(field, dtype, b"".join(lists.get(field, [])))
    return _shaped(array.view(_bfloat16()) if number == BFLOAT16 else array, shape)


def _shaped(values: Array, shape: tuple[int, ...]) -> Array:
    """One value stands for all; otherwise there is one for each element."""
    if values.size not in (1, math.prod(shape)):
        raise wire.DecodeError(f"a tensor of shape {shape} has {values.size} values")
    try:
        return values.reshape(shape) if values.size == math.prod(shape) else np.broadcast_to(values, shape).view()
    except (ValueError, OverflowError):
        raise wire.DecodeError(f"no array has the shape {shape}") from None


def _listed(field: int, dtype: np.dtype[Any], data: bytes) -> Array:
    if field in _FIXED_FIELDS:
        if len(data) % dtype.itemsize:
            raise wire.DecodeError("a list of numbers ends within one")
        return np.frombuffer(data, dtype)
    values = wire.packed_varints(data)
    if field == _HALF_FIELD:
        return values.astype("<u2").view(dtype)
    return values.view(np.int64).astype(dtype) if field != 17 else values.astype(dtype)
