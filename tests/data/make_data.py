#!/usr/bin/env python3
"""Writes the small files of this directory with numpy's and Python's own code, so that the readers are held against an independent writer.

Every array is a ramp that the tests compute again: element i, in C order, is (37 * i) % 101 - 50 (signed types), (37 * i) % 101
(unsigned), ((37 * i) % 101 - 50) / 4 (floats), i % 3 == 0 (bool).
"""
import gzip
import io
import json
import pathlib
import struct
import zipfile

import numpy as np

HERE = pathlib.Path(__file__).parent


def ramp(dtype, *shape):
    n = int(np.prod(shape, dtype=np.int64))
    i, dtype = np.arange(n), np.dtype(dtype)
    raw = 37 * i % 101
    if dtype.kind == "b":
        values = i % 3 == 0
    elif dtype.kind == "u":
        values = raw
    else:
        values = (raw - 50) / 4 if dtype.kind == "f" else raw - 50
    return values.astype(dtype).reshape(shape)


def npz():
    np.savez(HERE / "plain.npz", x=ramp("<f4", 5, 3), y=(np.arange(5) % 3).astype("<i8"))
    np.savez_compressed(HERE / "packed.npz", x=ramp("u1", 60, 4, 2), y=(np.arange(60) % 10).astype("<i4"))
    types = {c + s: ramp(c + s, 4, 3) for c in "iu" for s in "1248"} | {f: ramp(f, 4, 3) for f in ("f2", "f4", "f8", "?")}
    big = {"big_" + t: ramp(">" + t, 4, 3) for t in ("i2", "u4", "i8", "f2", "f4", "f8")}
    order = {"fortran": np.asfortranarray(ramp("<f8", 4, 3, 2)), "big_fortran": np.asfortranarray(ramp(">i4", 5, 7))}
    np.savez_compressed(HERE / "types.npz", **{"bool" if k == "?" else k: v for k, v in types.items()}, **big, **order)
    np.savez(HERE / "names.npz", left=ramp("<f4", 6, 2), right=ramp("<f4", 6, 3), out=ramp("<f4", 6, 1), other=ramp("<f4", 2))
    strange = {"objects": np.array([{"a": 1}, None], dtype=object), "words": np.array(["a", "b"]), "pairs": np.zeros(3, [("a", "f4"), ("b", "i4")]),
               "waves": np.zeros(3, "c8"), "days": np.zeros(3, "M8[D]"), "scalar": np.float32(3), "none": np.zeros((0, 3), "f4")}
    np.savez(HERE / "strange.npz", **strange)
    for version in (2, 3):  # and written to a stream that cannot seek: sizes only in the directory and behind the data
        array = io.BytesIO()
        np.lib.format.write_array(array, ramp("<f4", 5, 3), version=(version, 0))
        class Pipe(io.RawIOBase):
            def __init__(self): self.data = b""
            def writable(self): return True
            def write(self, b): self.data += bytes(b); return len(b)
        pipe = Pipe()
        with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED if version == 3 else zipfile.ZIP_STORED) as z:
            with z.open("x.npy", "w", force_zip64=version == 3) as f:
                f.write(array.getvalue())
            z.comment = b"a comment behind the directory, PK\x05\x06 included"
        (HERE / f"stream_v{version}.npz").write_bytes(pipe.data)


def idx():
    codes = {"u1": 8, "i1": 9, ">i2": 11, ">i4": 12, ">f4": 13, ">f8": 14}
    for name, dtype in {"ubyte": "u1", "byte": "i1", "short": ">i2", "int": ">i4", "float": ">f4", "double": ">f8"}.items():
        a = ramp(dtype, 4, 3)
        (HERE / f"{name}.idx").write_bytes(struct.pack(">HBB2I", 0, codes[dtype], 2, *a.shape) + a.tobytes())
    folder = HERE / "idx"
    folder.mkdir(exist_ok=True)
    for prefix, n in (("train", 7), ("t10k", 4)):
        images = struct.pack(">HBB3I", 0, 8, 3, n, 3, 2) + ramp("u1", n, 3, 2).tobytes()
        labels = struct.pack(">HBBI", 0, 8, 1, n) + bytes(i % 5 for i in range(n))
        (folder / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images, mtime=0))
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(labels)


def bfloat16(a):
    return (a.astype("<f4").view("<u4") >> 16).astype("<u2")


def safetensors():
    tensors = {"z/f32": ("F32", ramp("<f4", 7, 5)), "f64": ("F64", ramp("<f8", 3, 4)), "f16": ("F16", ramp("<f2", 3, 4)),
               "bf16": ("BF16", bfloat16(ramp("<f4", 3, 4))), "i32": ("I32", ramp("<i4", 3, 4)), "i64": ("I64", ramp("<i8", 3, 4)),
               "i16": ("I16", ramp("<i2", 3, 4)), "i8": ("I8", ramp("i1", 3, 4)), "u8": ("U8", ramp("u1", 3, 4)), "u64": ("U64", ramp("<u8", 3, 4)),
               "bool": ("BOOL", ramp("?", 3, 4)), "scalar": ("F32", np.array(2.5, "<f4")), "empty": ("F32", np.zeros((0, 3), "<f4")),
               "cube": ("F32", ramp("<f4", 3, 4, 5)), "large": ("I64", np.array([1 << 40], "<i8"))}
    head, data = {}, b""
    for name, (dtype, a) in tensors.items():
        head[name] = {"dtype": dtype, "shape": list(a.shape), "data_offsets": [len(data), len(data) + a.nbytes]}
        data += a.tobytes()
    head = dict(sorted(head.items(), reverse=True)) | {"__metadata__": {"format": "np", "who": "make_data.py"}}
    text = json.dumps(head).encode()
    (HERE / "types.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


npz(), idx(), safetensors()
