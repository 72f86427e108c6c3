"""Protobuf's wire format, as far as the messages of this package need it.

Written messages are lists of pieces, which are joined once; so a tensor's bytes are copied once. Read messages are views
of the reply's bytes, and nothing is copied.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Union

import numpy as np

Piece = Union[bytes, memoryview]
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_VARINT = 10  # bytes


class DecodeError(ValueError):
    """The bytes are not the message that was expected."""


def varint(value: int) -> bytes:
    """Negative numbers are written as their 64 bits of two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(number: int, value: int) -> list[Piece]:
    return [varint(number << 3 | VARINT) + varint(value)]


def field(number: int, pieces: list[Piece]) -> list[Piece]:
    """A string, bytes or a message, of pieces."""
    size = sum(len(piece) for piece in pieces)
    return [varint(number << 3 | BYTES) + varint(size), *pieces]


def text_field(number: int, text: str) -> list[Piece]:
    return field(number, [text.encode()]) if text else []


def entry(number: int, key: str, value: list[Piece]) -> list[Piece]:
    """An entry of a map from strings to messages."""
    return field(number, text_field(1, key) + field(2, value))


def read_varint(view: memoryview, at: int) -> tuple[int, int]:
    """The number at `at`, and where it ends."""
    value = 0
    for place in range(MAX_VARINT):
        if at + place >= len(view):
            raise DecodeError("the message ends within a number")
        octet = view[at + place]
        value |= (octet & 0x7F) << 7 * place
        if octet < 0x80:
            return value & ((1 << 64) - 1), at + place + 1
    raise DecodeError("a number has more than 10 bytes")


def fields(view: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Each field's number, its wire type and its bytes: those of a number are as they are on the wire."""
    at, size = 0, len(view)
    while at < size:
        tag, at = read_varint(view, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise DecodeError("a field has the number 0")
        if kind == VARINT:
            end = read_varint(view, at)[1]
        elif kind == FIXED64:
            end = at + 8
        elif kind == FIXED32:
            end = at + 4
        elif kind == BYTES:
            length, at = read_varint(view, at)
            end = at + length
        else:
            raise DecodeError(f"field {number} has the unknown wire type {kind}")
        if end > size:
            raise DecodeError(f"the message ends within field {number}")
        yield number, kind, view[at:end]
        at = end


def messages(view: memoryview, number: int) -> Iterator[memoryview]:
    """The messages of a repeated field."""
    for found, kind, value in fields(view):
        if found == number and kind == BYTES:
            yield value


def entries(view: memoryview, number: int) -> Iterator[tuple[str, memoryview]]:
    """The entries of a map from strings to messages."""
    for pair in messages(view, number):
        key, value = "", memoryview(b"")
        for found, kind, part in fields(pair):
            if found == 1 and kind == BYTES:
                key = text(part)
            elif found == 2 and kind == BYTES:
                value = part
        yield key, value


def text(value: memoryview) -> str:
    return bytes(value).decode(errors="replace")


def number(value: memoryview, kind: int) -> int:
    """An int64, or 0 if the field is no such number."""
    if kind != VARINT:
        return 0
    unsigned = read_varint(value, 0)[0]
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


def packed_varints(data: bytes) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Numbers that follow each other without tags."""
    octets = np.frombuffer(data, np.uint8)
    if octets.size == 0:
        return np.zeros(0, np.uint64)
    ends = np.flatnonzero(octets < 0x80)
    if ends.size == 0 or ends[-1] != octets.size - 1:
        raise DecodeError("a list of numbers ends within one")
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if lengths.max() > MAX_VARINT:
        raise DecodeError("a number has more than 10 bytes")
    place = np.arange(octets.size) - np.repeat(starts, lengths)
    parts = (octets & 0x7F).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.bitwise_or.reduceat(parts, starts)
