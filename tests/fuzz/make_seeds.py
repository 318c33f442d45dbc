#!/usr/bin/env python3
"""Writes seeds/ and regressions/ beside this file: small inputs of each kind, and the inputs that once crashed, hung or took too much memory.
seeds/ir/OP.ir are the samples of each op, printed. Needs Python only. Run it again after a change here; the files are committed."""
import gzip
import io
import json
import pathlib
import struct
import zipfile

HERE = pathlib.Path(__file__).parent


def write(path, content):
    path = HERE / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


# --- Keras ---------------------------------------------------------------------------------------------------------------------------------


def layer(class_name, name, /, inputs=None, calls=None, **config):
    entry = {"module": "keras.layers", "class_name": class_name, "config": {"name": name, **config}, "registered_name": None, "name": name}
    if inputs is not None:
        calls = [inputs]
    if calls is not None:
        entry["inbound_nodes"] = [{"args": [[tensor(*one) for one in call] if len(call) > 1 else tensor(*call[0])], "kwargs": {}} for call in calls]
    return entry


def tensor(name, call=0, output=0):
    return {"class_name": "__keras_tensor__", "config": {"shape": [None, 4], "dtype": "float32", "keras_history": [name, call, output]}}


def start(name="x", shape=(4,)):
    return {"module": "keras.layers", "class_name": "InputLayer", "config": {"name": name, "batch_shape": [None, *shape]}, "name": name,
            "inbound_nodes": []}


def sequential(*layers, shape=(4,)):
    return {"module": "keras", "class_name": "Sequential", "config": {"name": "s", "layers": [start(shape=shape), *layers]}}


def functional(name, layers, outputs):
    return {"module": "keras.src.models.functional", "class_name": "Functional", "name": name,
            "config": {"name": name, "layers": layers, "input_layers": [[layers[0]["name"], 0, 0]], "output_layers": outputs}}


def doubled(depth):
    """Each model calls the one within it twice."""
    model = functional("m0", [start("x0"), layer("Dense", "d", inputs=[("x0",)], units=4)], [["d", 0, 0]])
    for i in range(1, depth):
        below = f"m{i - 1}"
        model["inbound_nodes"] = [{"args": [tensor(f"x{i}")], "kwargs": {}}, {"args": [tensor(below, 1)], "kwargs": {}}]
        model["inbound_nodes"][1]["args"] = [tensor(below, 0)]
        model = functional(f"m{i}", [start(f"x{i}"), model], [[below, 2, 0]])
    return model


def from_tests():
    """Each kind of layer and of compile_config that the tests' files have, alone in a model: small inputs make quick runs."""
    layers, compiled = {}, {}
    tests = HERE.parent
    for path in sorted(tests.glob("keras_files/*.json")) + sorted(tests.glob("models/*.json")):
        model = json.loads(path.read_text())
        if "class_name" not in model:
            continue
        if model.get("compile_config"):
            compiled.setdefault(json.dumps(model["compile_config"], sort_keys=True), model["compile_config"])
        for one in model["config"]["layers"]:
            config = {key: value for key, value in one.get("config", {}).items() if value is not None and key != "dtype"}
            kinds = {key: value.get("class_name") if isinstance(value, dict) else value for key, value in config.items()}
            kind = json.dumps([one["class_name"], {key: value for key, value in kinds.items() if isinstance(value, str) and key != "name"}])
            if one["class_name"] not in ("InputLayer", "Functional", "Sequential") and "ops" not in one.get("module", ""):
                layers.setdefault(kind, (one["class_name"], config))
    for i, (class_name, config) in enumerate(layers.values()):
        write(f"seeds/keras/layer_{i}.json", json.dumps(sequential({"class_name": class_name, "config": config})))
    for i, config in enumerate(compiled.values()):
        write(f"seeds/keras/compiled_{i}.json", json.dumps({**sequential(layer("Dense", "d", units=3, activation="softmax")), "compile_config": config}))


def keras():
    from_tests()
    many = [-1] * 12
    bad = {
        "axes_layer_norm": sequential(layer("LayerNormalization", "n", axis=many)),
        "axes_normalization": sequential(layer("Normalization", "n", axis=many)),
        "reshape_zero_product": sequential(layer("Reshape", "r", target_shape=[65536] * 4 + [-1])),
        "reshape_overflow": sequential(layer("Reshape", "r", target_shape=[2147483647] * 5)),
        "calls_doubled": doubled(40),
    }
    two = functional("two", [start("i"), layer("Dense", "p", inputs=[("i",)], units=4), layer("Dense", "q", inputs=[("i",)], units=4)],
                     [["p", 0, 0], ["q", 0, 0]])
    two["inbound_nodes"] = [{"args": [tensor("d")], "kwargs": {}}]
    two["shared_object_id"] = 7
    dense = layer("Dense", "d", inputs=[("x",)], units=4)
    dense["shared_object_id"] = 7
    bad["shared_id_of_two"] = functional("m", [start(), dense, two], [["two", 1, 1]])
    for name, model in bad.items():
        write(f"regressions/keras/{name}.json", json.dumps(model))
    write("seeds/keras/merge.json", json.dumps(functional("m", [
        start(), layer("Dense", "a", inputs=[("x",)], units=3), layer("Dense", "b", inputs=[("x",)], units=3),
        layer("Concatenate", "c", inputs=[("a",), ("b",)], axis=-1), layer("LayerNormalization", "n", inputs=[("c",)], axis=[1])],
        [["n", 0, 0]])))
    write("seeds/keras/stack.json", json.dumps(sequential(
        layer("Rescaling", "r", scale=0.5, offset=1), layer("Normalization", "z", axis=[-1], mean=[1, 2, 3, 4], variance=[1, 1, 1, 1]),
        layer("Reshape", "s", target_shape=[2, -1]), layer("Flatten", "f"), layer("Dropout", "o", rate=0.5, seed=1),
        layer("BatchNormalization", "b", axis=-1), layer("Softmax", "p", axis=-1))))


# --- layouts -------------------------------------------------------------------------------------------------------------------------------


def layout():
    write("seeds/layout/rules.json", json.dumps({"sequential/dense/kernel": [None, "model"], ".*bias": ["model"], "norm/.*": [],
                                                 "experts/kernel": [["data", "model"], None, None], "(?i)SEQ.*/dense_1/kernel": ["data"]}))
    write("regressions/layout/number_too_large.json", '{"a": [1e999]}')
    write("regressions/layout/deep.json", '{"a": ' + "[" * 20000 + "]" * 20000 + "}")
    write("regressions/layout/deep_object.json", '{"a":' * 3000 + "1" + "}" * 3000)
    rules = ", ".join(f'"\\\\pL{{{i}}}": []' for i in range(40, 52))
    write("regressions/layout/programs.json", "{" + rules + "}")


# --- arrays --------------------------------------------------------------------------------------------------------------------------------


def npy(descr, shape, content, version=1, fortran=False):
    header = repr({"descr": descr, "fortran_order": fortran, "shape": shape}).encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + content


def npz(arrays, compression=zipfile.ZIP_STORED, zip64=False):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in arrays.items():
            with archive.open(zipfile.ZipInfo(name + ".npy"), "w", force_zip64=zip64) as member:
                member.write(content)
    return out.getvalue()


def arrays():
    x, y = npy("<f4", (2, 2, 2), struct.pack("<8f", *range(8))), npy("|u1", (2,), bytes([3, 9]))
    write("seeds/npz/pair.npz", npz({"image": x, "class": y}))
    write("seeds/npz/deflated.npz", npz({"x": x, "y": y}, zipfile.ZIP_DEFLATED))
    write("seeds/npz/zip64.npz", npz({"x": x, "y": y}, zip64=True))
    write("seeds/npz/single.npy", x)
    write("seeds/npz/fortran.npy", npy(">i8", (2, 3), struct.pack(">6q", *range(6)), version=2, fortran=True))
    write("regressions/npz/empty_but_large.npz", npz({"x": npy("<f4", (0, 1 << 40, 1 << 40), b""), "y": y}))
    write("regressions/npz/empty_but_large.npy", npy("<f4", (0, 1 << 40, 1 << 40), b"", fortran=True))
    idx = bytes([0, 0, 8, 3]) + struct.pack(">3I", 2, 2, 2) + bytes(range(8))
    write("seeds/idx/images.idx", idx)
    write("seeds/idx/images.idx.gz", gzip.compress(idx, mtime=0))
    write("regressions/idx/empty_but_large.idx", bytes([0, 0, 8, 4]) + struct.pack(">4I", 0, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF))


# --- weights -------------------------------------------------------------------------------------------------------------------------------


def safetensors():
    def file(header, numbers=b""):
        text = header if isinstance(header, str) else json.dumps(header)
        return struct.pack("<Q", len(text)) + text.encode() + numbers

    write("seeds/safetensors/empty.safetensors", file({}))
    write("seeds/safetensors/two.safetensors", file({"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
                                                     "b": {"dtype": "I64", "shape": [], "data_offsets": [24, 32]}}, bytes(32)))
    write("regressions/safetensors/empty_but_large.safetensors",
          file({"a": {"dtype": "F32", "shape": [0, 1 << 61, 1 << 61], "data_offsets": [0, 0]}}))


# --- graphs --------------------------------------------------------------------------------------------------------------------------------


def graphs():
    write("regressions/ir/devices.ir", "graph g mesh {'a': 1048576}\n")
    write("regressions/ir/attributes.ir", "in %0 f32[2]\n%1 = exp(%0) {" + ", ".join(f"a{i}=1" for i in range(2000)) + "}\n")
    write("regressions/ir/results.ir", ", ".join(f"%{i}" for i in range(2000)) + " = exp(%0)\n")


keras()
layout()
arrays()
safetensors()
graphs()
