"""Records in strings: CSV, bytes of a fixed length, compressed ones, scripts of letters."""

import gzip
import zlib

import numpy as np
import tensorflow as tf

from harness import Feed


def lines(*values, shape="rows"):
    """Strings to feed."""
    return Feed(np.array(list(values), object), shape)


def default(dtype, *values):
    """The default of a field; none: it is required."""
    return np.array(values, object if dtype == "string" else dtype)


ALL = [default("float32", 1), default("int32", -7), default("string", "none"), default("int64", 0), default("float64", 2.5)]


def cases(c):
    """All of the family."""
    csv(c)
    padded(c)
    letters = Feed(np.array([65, 0x65E5, 0x430, 0x5D0, 32, 0x1F600, -1, 0x110000], np.int32))
    c.op("UnicodeScript", letters)
    packed(c)


def csv(c):
    """Quotes, defaults, delimiters, chosen columns; and lines that are none."""
    plain = lines("1.5,2,text,3,4", ",,,,", "-1e3,-2147483648,\"a,\"\"b\"\"\",9223372036854775807,1e-9", "0,0,,0,0")
    c.op("DecodeCSV", plain, ALL, case="all")
    c.op("DecodeCSV", lines(shape=[None]), ALL, case="none")
    c.op("DecodeCSV", Feed(np.array("1,2,x,3,4", object), []), ALL, case="scalar")
    c.op("DecodeCSV", Feed(np.array([["1,a"], ["2,b"]], object)), [default("int32", 0), default("string", "")], case="matrix")
    two = [default("int32", 5), default("string", "d")]
    c.op("DecodeCSV", lines("1;a", "NA;NA"), two, field_delim=";", na_value="NA", case="options")
    c.op("DecodeCSV", lines('1,"a', '2,b"'), two, use_quote_delim=False, case="no_quotes")
    c.op("DecodeCSV", lines("9,1,8,a,7", "x,2,y,b"), two, select_cols=[1, 3], case="columns")
    c.op("DecodeCSV", lines("1,"), two, case="last_empty")
    c.op("DecodeCSV", lines("\n1,a"), two, case="line_end_first")
    c.op("DecodeCSV", lines("1,a", "2,b"), [Feed(np.array([5], np.int32), [None]), two[1]], case="fed_default")
    required = [default("int32"), default("string", "d")]
    c.op("DecodeCSV", lines(",a"), required, case="required", fails="required")
    c.op("DecodeCSV", lines("x,a"), two, case="number", fails="not a valid int32")
    c.op("DecodeCSV", lines("1"), two, case="few", fails="Expect 2 fields")
    c.op("DecodeCSV", lines("1,2,3"), two, case="many", fails="Expect 2 fields")
    c.op("DecodeCSV", lines('1,a"b'), two, case="quote_inside", fails="quotes")
    c.op("DecodeCSV", lines('1,"a"b'), two, case="unescaped", fails="uote")
    c.op("DecodeCSV", lines('1,"'), two, case="open_quote", fails="uote")


def padded(c):
    """Cut or filled with zeros."""
    for kind in ("float32", "float64", "int32", "uint16", "uint8", "int16", "int8", "int64"):
        for little in (True, False):
            options = {"out_type": tf.as_dtype(kind), "little_endian": little}
            c.op("DecodePaddedRaw", lines("", "abc", "x" * 20), np.int32(16), case=f"{kind}_{little}", **options)
    c.op("DecodePaddedRaw", lines("abc"), Feed(np.array(3, np.int32), []), out_type=tf.int32, case="odd", fails="multiple")
    c.op("DecodePaddedRaw", Feed(np.array("abc", object), []), Feed(np.int32(4), []), out_type=tf.uint8, case="fed")


def packed(c):
    """Strings of zlib and gzip, whole and damaged."""
    texts = [b"", b"hello", b"floe " * 300, bytes(range(256))]
    pack = {"ZLIB": zlib.compress, "GZIP": lambda text: gzip.compress(text, mtime=0), "": bytes}
    for kind, function in pack.items():
        c.op("DecodeCompressed", Feed(np.array([function(t) for t in texts], object)), compression_type=kind, case=kind or "plain")
    whole = zlib.compress(b"some text that is packed")
    strings = {"trailing": whole + b"xyz", "no_bytes": b"", "cut": whole[:-2]}
    for name, text in strings.items():
        c.op("DecodeCompressed", Feed(np.array([text], object)), compression_type="ZLIB", case=name)
    c.op("DecodeCompressed", Feed(np.array([[whole, whole]], object)), compression_type="ZLIB", case="matrix")
    wrong = {"header": b"abcdef", "check": whole[:-4] + b"abcd", "gzip": gzip.compress(b"text", mtime=0)}
    for name, text in wrong.items():
        c.op("DecodeCompressed", Feed(np.array([text], object)), compression_type="ZLIB", case=name, fails="inflate")
