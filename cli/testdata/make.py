"""Writes the arrays that npy_test.cc and npz_test.cc read: files of NumPy's own making."""
import os

import ml_dtypes
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def arrays():
    six = np.arange(6).reshape(2, 3)
    made = {code: six.astype(code) for code in
            ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16"]}
    made["bf16"] = six.astype(ml_dtypes.bfloat16)
    made["b1"] = six % 2 == 1
    made["fortran"] = np.asfortranarray(np.arange(24, dtype="i4").reshape(2, 3, 4))
    made["scalar"] = np.array(2.5, "f4")
    made["empty"] = np.zeros((0, 3), "f4")
    made["scope/name__1"] = np.array([7], "i8")
    return made


np.savez(os.path.join(HERE, "stored.npz"), **arrays())
np.savez_compressed(os.path.join(HERE, "deflated.npz"), **arrays())
np.save(os.path.join(HERE, "f4_2x3.npy"), arrays()["f4"])
with open(os.path.join(HERE, "version2.npy"), "wb") as file:
    np.lib.format.write_array(file, arrays()["i2"], version=(2, 0))
