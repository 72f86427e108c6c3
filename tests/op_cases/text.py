"""Strings as bytes and letters: parts, lengths, hashes, base64, code points, n-grams, crosses."""

import numpy as np
import tensorflow as tf

from harness import INTS, Feed

WORDS = ["", "a", "Floe", "häß", "日本語 text", "x,y;;z", "a longer text of more than sixteen bytes", "\0\xff"]


def words(*values, shape="rows"):
    """Strings to feed; without values a mixed lot."""
    return Feed(np.array(list(values) or WORDS, object), shape)


def lists(*values):
    """A constant vector of int64."""
    return np.array(values, np.int64)


def cases(c):
    """All of the family."""
    parts(c)
    hashes(c)
    codes(c)
    unicode(c)
    ngrams(c)
    splits(c)
    crosses(c)
    segments(c)
    fingerprints(c)


def parts(c):
    """Lengths and substrings, in bytes and letters."""
    for unit in ("BYTE", "UTF8_CHAR"):
        c.op("StringLength", words(), unit=unit, case=unit)
        for pos, length in ((0, 2), (1, 100), (0, 0), (-1, 1), (-2, 2), (1, 1)):
            x = words("Floe", "häßlich", "日本語")
            c.op("Substr", x, np.int32(pos), np.int32(length), unit=unit, case=f"{unit}_{pos}_{length}")
        x = words("Floe", "häß", "日本語")
        each = Feed(np.array([1, 0, -1], np.int64), [None]), Feed(np.array([2, 1, 1], np.int64), [None])
        c.op("Substr", x, *each, unit=unit, case=f"{unit}_each")
        c.op("Substr", words("abc"), np.int32(4), np.int32(1), unit=unit, case=f"{unit}_past", fails="out of range")
        c.op("Substr", words("abc"), np.int32(-4), np.int32(1), unit=unit, case=f"{unit}_before", fails="out of range")
        c.op("Substr", words("abc"), np.int32(3), np.int32(1), unit=unit, case=f"{unit}_end")
    table = Feed(np.array([["Floe", "serving"], ["many", "models"]], object))
    c.op("Substr", table, np.array([1, 2], np.int32), np.array([1, 2], np.int32), case="broadcast")
    c.op("Substr", words("abcdef", shape=[1]), lists(0, 1, 2), lists(1, 2, 3), case="broadcast_text")
    c.op("Substr", Feed(np.array("abcdef", object), []), np.int32(2), np.int32(3), case="scalar")
    c.op("Substr", words("abcdef"), np.int32(2), np.int32(-1), case="negative_length")
    c.op("Substr", words("häß"), np.int32(1), np.int32(-1), unit="UTF8_CHAR", case="UTF8_CHAR_negative_length")
    c.op("Substr", words("häß"), np.int32(-1), np.int32(-1), unit="UTF8_CHAR", case="UTF8_CHAR_both", fails="out of range")
    broken = Feed(np.array([b"\x80ab"], object))
    for pos in (-3, -1, 0, 1, 3):
        c.op("Substr", broken, np.int32(pos), np.int32(1), unit="UTF8_CHAR", case=f"UTF8_CHAR_broken_{pos}")
    c.op("StringLength", Feed(np.zeros((0, 2), object)), case="empty")


def hashes(c):
    """Buckets by three hashes; the third is elsewhere."""
    for buckets in (1, 10, 2**62):
        c.op("StringToHashBucket", words(), num_buckets=buckets, case=str(buckets))
        c.op("StringToHashBucketStrong", words(), num_buckets=buckets, key=[98765, -132], case=str(buckets))
    long = words("x" * 7, "y" * 8, "z" * 9, "w" * 15, "v" * 16, "u" * 100)
    c.op("StringToHashBucket", long, num_buckets=2**62, case="sizes")
    c.op("StringToHashBucketStrong", long, num_buckets=2**62, key=[1, 2], case="sizes")


def codes(c):
    """base64 and numbers in bytes."""
    plain = Feed(np.array([b"", b"f", b"fo", b"foo", b"foob", bytes(range(250, 256)) + b"\x3e\x3f"], object))
    c.op("EncodeBase64", plain)
    c.op("EncodeBase64", plain, pad=True, case="pad")
    c.op("DecodeBase64", words("", "Zg", "Zg==", "Zm8", "Zm9v", "Zm9vYg==", "-_-_"))
    for name, code in (("plus", "+/+/"), ("length", "Zm9vY"), ("pads", "Zg="), ("inside", "Z=g="), ("blank", "Zg ")):
        c.op("DecodeBase64", words(code), case=name, fails="not base64")
    data = bytes(range(32))
    for kind in ("float16", "float32", "float64", "int32", "uint16", "uint8", "int16", "int8", "int64", "bfloat16"):
        for little in (True, False):
            x = Feed(np.array([data, data[::-1]], object))
            c.op("DecodeRaw", x, out_type=tf.as_dtype(kind), little_endian=little, case=f"{kind}_{little}")
    for kind in ("complex64", "complex128"):
        x = Feed(np.array(np.arange(4, dtype=kind).tobytes(), object), [])
        c.op("DecodeRaw", x, out_type=tf.as_dtype(kind), case=kind)
        c.op("DecodeRaw", x, out_type=tf.as_dtype(kind), little_endian=False, case=f"{kind}_big", rtol=0, atol=0)
    c.op("DecodeRaw", Feed(np.array([[b"\0\1"], [b"\1\0"]], object)), out_type=tf.bool, case="bool")
    c.op("DecodeRaw", words("", ""), out_type=tf.int32, case="nothing")
    c.op("DecodeRaw", Feed(np.zeros((0,), object)), out_type=tf.int32, case="empty")
    c.op("DecodeRaw", words("abcd", "ab"), out_type=tf.uint8, case="lengths", fails="in one tensor")
    c.op("DecodeRaw", words("abc"), out_type=tf.int16, case="odd", fails="whole int16")


def unicode(c):
    """Code points from strings and back; bytes that are none."""
    broken = Feed(np.array([b"a\xffb", b"\xe6\x97", b"ok", b"\xc3\x28x", b"\xed\xa0\x80", b"\1\n\x7f"], object))
    for op in ("UnicodeDecode", "UnicodeDecodeWithOffsets"):
        c.op(op, words(), input_encoding="UTF-8")
        c.op(op, broken, input_encoding="UTF-8", case="replace")
        c.op(op, broken, input_encoding="UTF-8", replacement_char=63, case="question")
        c.op(op, broken, input_encoding="UTF-8", errors="ignore", case="ignore")
        c.op(op, broken, input_encoding="UTF-8", replace_control_characters=True, case="controls")
        c.op(op, broken, input_encoding="UTF-8", errors="strict", case="strict", fails="formatting")
        controls = Feed(np.array([b"a\1b\n"], object))
        for errors in ("ignore", "strict"):
            more = {"errors": errors, "replace_control_characters": True}
            c.op(op, controls, input_encoding="UTF-8", case=f"controls_{errors}", **more)
        wide = Feed(np.array(["Floe 日".encode("utf-16-be"), b"\xd8\x00\x00a", b"odd"], object))
        c.op(op, wide, input_encoding="UTF-16-BE", case="utf16")
        c.op(op, Feed(np.array([b"h\xe4\xdf"], object)), input_encoding="ISO-8859-1", case="latin")
        c.op(op, Feed(np.array("häß", object), []), input_encoding="UTF-8", case="scalar")
        c.op(op, Feed(np.array([["a", "bc"], ["", "ß"]], object)), input_encoding="UTF-8", case="matrix")
        c.op(op, Feed(np.zeros((0,), object)), input_encoding="UTF-8", case="empty")
    for output in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        c.op("UnicodeTranscode", words(), input_encoding="UTF-8", output_encoding=output, case=output)
        c.op("UnicodeTranscode", broken, input_encoding="UTF-8", output_encoding=output, case=f"{output}_broken")
        letters = Feed(np.array([70, 108, 0x65E5, 0x1F600, 228], np.int32), [None])
        c.op("UnicodeEncode", letters, lists(0, 2, 2, 5), output_encoding=output, case=output)
    bad = Feed(np.array([70, 0xD800, 0x110000, -1, 0xFFFE, 71], np.int32), [None])
    options = {"output_encoding": "UTF-8"}
    c.op("UnicodeEncode", bad, lists(0, 3, 6), case="replace", **options)
    c.op("UnicodeEncode", bad, lists(0, 3, 6), errors="ignore", case="ignore", **options)
    c.op("UnicodeEncode", bad, lists(0, 3, 6), replacement_char=63, case="question", **options)
    c.op("UnicodeEncode", bad, lists(0, 3, 6), errors="strict", case="strict", fails="out of range", **options)
    c.op("UnicodeEncode", bad, lists(0, 7), case="splits", fails="input_splits", **options)
    c.op("UnicodeEncode", bad, np.array([0, 6], np.int32), case="int32", **options)
    for errors in ("ignore", "strict"):
        more = {"fails": "formatting"} if errors == "strict" else {}
        options = {"input_encoding": "UTF-8", "output_encoding": "UTF-8", "errors": errors}
        c.op("UnicodeTranscode", broken, case=errors, **options, **more)
        controls = Feed(np.array([b"a\1b\n"], object))
        options["replace_control_characters"] = True
        c.op("UnicodeTranscode", controls, case=f"controls_{errors}", **options, **more)


def ngrams(c):
    """Widths, padding, short sentences."""
    data = words("a", "b", "c", "d", "e", "f", shape=[None])
    base = {"separator": "|", "left_pad": "L", "right_pad": "R"}
    for widths, pad, keep in (
        ([1], 0, False),
        ([2], -1, False),
        ([2, 3], 1, False),
        ([3], 2, False),
        ([4], 1, True),
        ([7], 0, True),
        ([9], 1, False),
        ([], 0, True),
        ([1, 4], 5, True),
    ):
        name = "_".join(map(str, widths)) + f"_{pad}_{keep}"
        options = {"ngram_widths": widths, "pad_width": pad, "preserve_short_sequences": keep, **base}
        c.op("StringNGrams", data, lists(0, 4, 4, 5, 6), case=name, **options)
    options = {"ngram_widths": [2], "pad_width": -1, "preserve_short_sequences": False, **base}
    c.op("StringNGrams", data, np.array([0, 6], np.int32), case="int32", **options)
    c.op("StringNGrams", words("", "b", "", shape=[None]), lists(0, 3), case="empty_words", **options)
    c.op("StringNGrams", Feed(np.zeros((0,), object), [None]), lists(0), case="empty", **options)
    none = Feed(np.zeros((0,), object), [None])
    c.op("StringNGrams", none, lists(0, 0), case="no_words", **options)
    short = {"ngram_widths": [], "pad_width": -1, "preserve_short_sequences": True, **base}
    c.op("StringNGrams", data, lists(0, 6), case="short_unpadded", fails="pad_width", **short)
    c.op("StringNGrams", data, lists(0, 7), case="past", fails="splits", **options)
    c.op("StringNGrams", data, lists(0, 4, 2, 6), case="falling", fails="splits", **options)


def splits(c):
    """Version 1 of splitting: every byte of the delimiter parts."""
    x = words("a b  c", "", " x ", "x,y;z", "ab")
    for name, delimiter in (("blank", " "), ("several", ",; "), ("none", ""), ("absent", "#")):
        for skip in (True, False):
            c.op("StringSplit", x, np.array(delimiter, object), skip_empty=skip, case=f"{name}_{skip}")
    c.op("StringSplit", Feed(np.zeros((0,), object), [None]), np.array(" ", object), case="empty")


def crosses(c):
    """Crossed features: strings and numbers, sparse and dense, as text and hashed."""
    i1 = Feed(lists([0, 0], [0, 1], [1, 0]).reshape(3, 2), [None, 2])
    i2 = Feed(lists([0, 0], [1, 0], [1, 1]).reshape(3, 2), [None, 2])
    v1, v2 = words("a", "b", "c", shape=[None]), words("d", "", "häß", shape=[None])
    numbers = Feed(lists(7, -8, 9), [None])
    s1, s2 = lists(2, 2), lists(2, 2)
    dense = Feed(np.array([["x"], ["y"]], object))
    dense_numbers = Feed(lists(1, 2, 3, 4).reshape(2, 2))
    sep = np.array("*", object)
    inputs = {
        "text": ([i1, i2], [v1, v2], [s1, s2], []),
        "mixed": ([i1, i2], [v1, numbers], [s1, s2], [dense]),
        "dense": ([], [], [], [dense, dense_numbers]),
        "one": ([i1], [numbers], [s1], []),
    }
    for name, given in inputs.items():
        options = {"num_buckets": 0, "hash_key": 956888297470, "internal_type": tf.string}
        if name == "text":
            c.op("SparseCross", *given, hashed_output=False, out_type=tf.string, case=name, **options)
        c.op("SparseCrossV2", *given, sep, case=name)
        hashed = {"hashed_output": True, "out_type": tf.int64, "internal_type": tf.int64}
        for buckets in (0, 100):
            options = {"num_buckets": buckets, "hash_key": 956888297470, **hashed}
            c.op("SparseCross", *given, case=f"{name}_{buckets}", **options)
            for strong in (False, True):
                if strong and name == "dense":  # TensorFlow crashes
                    continue
                last = (np.int64(buckets), np.array(strong), lists(137, 173))
                c.op("SparseCrossHashed", *given, *last, case=f"{name}_{buckets}_{strong}")
    gap = ([Feed(lists([1, 0]).reshape(1, 2), [None, 2])], [words("a", shape=[None])], [lists(3, 1)], [])
    c.op("SparseCrossV2", *gap, sep, case="gaps")
    bad_shape = ([i1], [v1], [Feed(lists(2, 2, 2), [None])], [])
    c.op("SparseCrossV2", *bad_shape, sep, case="shape", fails="shape")
    few = ([i1], [words("a", "b", shape=[None])], [s1], [])
    c.op("SparseCrossV2", *few, sep, case="counts", fails="values")
    rows = ([i1, i2], [v1, v2], [s1, lists(3, 2)], [])
    c.op("SparseCrossV2", *rows, sep, case="rows", fails="rows")


def segments(c):
    """Strings joined by segment."""
    words = Feed(np.array([["a", "b"], ["c", ""], ["e", "f"], ["g", "h"]], object))
    ids = np.array([2, 0, 1, 2], np.int32)
    c.op("UnsortedSegmentJoin", words, Feed(ids), np.int32(4), separator=", ")
    c.op("UnsortedSegmentJoin", words, np.array([[0, 1], [1, 0], [1, 1], [0, 0]], np.int64), np.int64(2), case="each")
    c.op("UnsortedSegmentJoin", words, ids, np.int32(2), case="outside", fails="segment id")
    c.op("UnsortedSegmentJoin", words, ids - 1, np.int32(2), case="negative", fails="segment id")


def fingerprints(c):
    """8 bytes for each row."""
    method = np.array("farmhash64", object)
    for dtype in INTS + ("float32", "float64", "bool", "string"):
        c.op("Fingerprint", c.feed(dtype, 5), method)
        c.op("Fingerprint", c.feed(dtype, 4, 2, 3), method, case="rows")
    c.op("Fingerprint", c.feed("string", 3, 1), method, case="one_each")
    c.op("Fingerprint", c.feed("string", 0, 2), method, case="empty")
    c.op("Fingerprint", c.feed("string", 3), Feed(np.array("md5", object), []), case="method", fails="method")
