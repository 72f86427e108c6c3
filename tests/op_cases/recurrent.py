"""Whole sequences: LSTM blocks, and labels found in the scores of a recurrent net (CTC)."""

import functools

import numpy as np
import tensorflow as tf

from harness import Feed


def cases(c):
    """All of the family."""
    lstm(c)
    beams(c)


def lstm(c):
    """Whole sequences of an LSTM, cut off and not."""
    weights = [c.data("float32", 3 + 2, 8)] + [c.data("float32", 2) for _ in range(3)] + [c.data("float32", 8)]
    x, state, h = c.feed("float32", 4, 2, 3), c.feed("float32", 2, 2), c.feed("float32", 2, 2)
    for op in ("BlockLSTM", "BlockLSTMV2"):
        for peephole in (False, True):
            options = {"use_peephole": peephole, "cell_clip": 0.5 if peephole else 3.0}
            c.op(op, np.int64(4), x, state, h, *weights, case=str(peephole), atol=1e-6, **options)
        c.op(op, Feed(np.int64(4), []), x, state, h, *weights, case="length_fed", atol=1e-6)
        for length in (2, 0):
            build = functools.partial(cut_off, getattr(tf.raw_ops, op), length, x, state, h, weights)
            c.graph(f"{op}_cut_{length}", build, atol=1e-6)


def beams(c):
    """Beam search over labels: one and several paths, merged repeats, wide and narrow beams."""
    for dtype in ("float32", "float64"):
        x = c.feed(dtype, 6, 2, 4, declared=[None, None, 4])
        lengths = np.array([6, 4], np.int32)
        for width, paths in ((1, 1), (3, 2), (100, 3)):
            if dtype == "float64" and width == 3:  # a tie
                continue
            for merge in (True, False):
                options = {"beam_width": width, "top_paths": paths, "merge_repeated": merge}
                if dtype == "float64":  # TensorFlow's scores pass through float32
                    options["rtol"] = 1e-6
                c.op("CTCBeamSearchDecoder", x, lengths, case=f"{width}_{paths}_{merge}", **options)
    options = {"beam_width": 2, "top_paths": 1}
    c.op("CTCBeamSearchDecoder", x, np.array([0, 1], np.int32), case="short", **options)
    c.op("CTCBeamSearchDecoder", x, np.array([7, 1], np.int32), case="long", fails="sequence_length", **options)
    negative, three = Feed(np.array([-1, 1], np.int32), [None]), Feed(np.array([1, 1, 1], np.int32), [None])
    c.op("CTCBeamSearchDecoder", x, negative, case="negative", **options)
    c.op("CTCGreedyDecoder", x, negative, case="negative")
    c.op("CTCGreedyDecoder", x, np.array([7, 1], np.int32), case="long", fails="sequence_length")
    c.op("CTCBeamSearchDecoder", x, three, case="lengths", fails="lengths", **options)


def cut_off(op, length, x, state, h, weights, enter):
    """States and outputs, which are zero past the length; TensorFlow leaves the gates there as they are."""
    fed = {"x": enter("x", x), "cs_prev": enter("cs", state), "h_prev": enter("h", h)}
    names = ("w", "wci", "wcf", "wco", "b")
    out = op(seq_len_max=np.int64(length), **fed, **dict(zip(names, weights)), cell_clip=3.0, use_peephole=False)
    return [out.cs, out.h]
