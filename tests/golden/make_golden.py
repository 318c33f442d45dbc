"""Trains the models of tests/models and a few more with Keras, and writes what comes out to tests/golden/train/NAME.json.

Run again only to add a model: `pip install keras==3.15.1 jax` and then `python tests/golden/make_golden.py`. No test needs Keras.

Everything that goes in follows from a formula, so only what comes out is stored: element i of stream s is
    unit(s, i) = (mix(s * 0x9E3779B9 + i) >> 8) / 2^24 - 0.5        (32-bit integers; mix is the finalizer of MurmurHash3)
times a power of two, exact in float32. A class is mix(...) mod the number of classes, a binary target its lowest bit.

Keras runs in float64 from those float32 values: a float32 program then is compared with the truth and not with other rounding errors.
`float32_difference` tells how far Keras' own float32 run is from it (losses relative, weights relative to the largest of their variable).
"""
import json, os, pathlib

os.environ["KERAS_BACKEND"] = "jax"
import jax
jax.config.update("jax_enable_x64", True)
import keras
import numpy as np
from keras import layers as L, regularizers as R

HERE = pathlib.Path(__file__).parent
OUT = HERE / "train"
MODELS = HERE.parent / "models"
SAMPLES, BATCH, STEPS = 75, 32, 12  # 32, 32, 11: four epochs with a partial last batch


def mix(stream, count):
    with np.errstate(over="ignore"):
        h = np.arange(count, dtype=np.uint32) + np.uint32(stream * 0x9E3779B9 & 0xFFFFFFFF)
        h ^= h >> 16; h *= np.uint32(0x85EBCA6B); h ^= h >> 13; h *= np.uint32(0xC2B2AE35); h ^= h >> 16
    return h


def unit(stream, shape):
    return ((mix(stream, int(np.prod(shape))) >> 8) / 2.0**24 - 0.5).reshape(shape)


def power_of_two(x):
    return float(2.0 ** np.floor(np.log2(x)))


def paths_of(model):
    """Keras loses the name of a Sequential in the paths of a model that it reads from JSON; these are those of the model as it was written."""
    prefix, result = f"{model.name}/" if isinstance(model, keras.Sequential) else "", {}
    for layer in model.layers:
        if isinstance(layer, keras.Model): result |= paths_of(layer)
        else: result |= {id(v): f"{prefix}{layer.name}/{v.name}" for v in layer.weights}
    return result


def weights_of(model):
    """(variable, path, stream, scale, offset, values); kernels about as Glorot would, the rest around their usual value."""
    result, paths = [], paths_of(model)
    for number, v in enumerate(v for v in model.weights if id(v) in paths):
        scale = power_of_two(2 * (6 / sum(v.shape)) ** .5) if len(v.shape) == 2 else 0.25
        offset = 1.0 if v.name in ("gamma", "moving_variance") else 0.0
        result.append((v, paths[id(v)], 100 + number, scale, offset, unit(100 + number, tuple(v.shape)) * scale + offset))
    return result


def targets(spec, stream):
    if spec["kind"] == "class": return (mix(stream, SAMPLES) % spec["classes"]).astype(np.int32)
    if spec["kind"] == "one_hot": return np.eye(spec["classes"])[mix(stream, SAMPLES) % spec["classes"]]
    if spec["kind"] == "binary": return (mix(stream, SAMPLES * spec["width"]) & 1).reshape(SAMPLES, -1).astype(np.float64)
    return unit(stream, (SAMPLES, *spec["shape"])) * 4


def run(text, compile_args, target_specs, dtype, scale):
    keras.config.set_floatx(dtype)
    # The policy stands in every layer of the file.
    model = keras.models.model_from_json(text.replace('"float32"', f'"{dtype}"'))
    if compile_args: model.compile(**compile_args)
    weights = weights_of(model)
    for v, *_, values in weights: v.assign(values)
    x = [unit(10 + i, (SAMPLES, *t.shape[1:])) * scale for i, t in enumerate(model.inputs)]
    y = [targets(spec, 20 + i) for i, spec in enumerate(target_specs)]
    pick = lambda arrays, rows: arrays[0][rows] if len(arrays) == 1 else [a[rows] for a in arrays]
    losses, at = [], 0
    for _ in range(STEPS):
        rows = slice(at, min(at + BATCH, SAMPLES)); at = 0 if rows.stop == SAMPLES else rows.stop
        model.reset_metrics()
        losses.append(float(model.train_on_batch(pick(x, rows), pick(y, rows), return_dict=True)["loss"]))
    everything = slice(0, SAMPLES)
    evaluated = model.evaluate(pick(x, everything), pick(y, everything), batch_size=BATCH, verbose=0, return_dict=True)
    predicted = model.predict(pick(x, everything), batch_size=BATCH, verbose=0)
    predicted = predicted if isinstance(predicted, list) else [predicted]
    final = [np.asarray(v.value, np.float64) for v, *_ in weights]
    return model, weights, losses, final, {k: float(e) for k, e in evaluated.items()}, predicted


def number(x):
    return float(f"{x:.9g}")


def digest(values, most):
    """Evenly spaced elements and two sums over all of them."""
    flat = values.reshape(-1); step = max(1, len(flat) // most)
    return {"step": step, "values": [number(v) for v in flat[::step]], "sum": number(flat.sum()), "sum_squares": number((flat**2).sum())}


def write(name, text, target_specs, compile_args=None, most=4096, store_model=False, scale=2.0):
    model, weights, losses, final, evaluated, predicted = run(text, compile_args, target_specs, "float64", scale)
    _, _, losses32, final32, _, _ = run(text, compile_args, target_specs, "float32", scale)
    difference = {"losses": number(max(abs(a - b) / abs(b) for a, b in zip(losses32, losses))),
                  "weights": number(max(np.abs(a - b).max() / max(np.abs(b).max(), 1e-3) for a, b in zip(final32, final)))}
    input_names = [t._keras_history.operation.name for t in model.inputs]
    output_names = [t._keras_history.operation.name for t in model.outputs]
    if store_model: (OUT / f"{name}.model.json").write_text(text + "\n")
    (OUT / f"{name}.json").write_text(json.dumps({
        "keras": keras.__version__, "backend": "jax, float64", "model": f"golden/train/{name}.model.json" if store_model else f"models/{name}.json",
        "compile": compile_args, "samples": SAMPLES, "batch_size": BATCH, "steps": STEPS,
        "inputs": [{"name": n, "shape": list(t.shape[1:]), "stream": 10 + i, "scale": scale} for i, (n, t) in enumerate(zip(input_names, model.inputs))],
        "targets": [dict(spec, name=n, stream=20 + i) for i, (n, spec) in enumerate(zip(output_names, target_specs))],
        "losses": [number(l) for l in losses], "evaluate": {k: number(v) for k, v in evaluated.items()},
        "predictions": [digest(p, 128) for p in predicted],
        "weights": [dict(path=path, shape=list(v.shape), stream=s, scale=c, offset=o, **digest(f, most))
                    for (v, path, s, c, o, _), f in zip(weights, final)],
        "float32_difference": difference}) + "\n")
    print(f"{name}: {len(losses)} losses {losses[0]:.6f} .. {losses[-1]:.6f}, {sum(f.size for f in final)} weights, {evaluated}, {difference}")
    keras.utils.clear_session()


def model_text(make, **compile_args):
    keras.utils.clear_session()
    keras.config.set_floatx("float32")
    model = make()
    model.compile(**compile_args)
    text = model.to_json()
    keras.utils.clear_session()
    return text


def norms():
    return keras.Sequential([
        keras.Input((12,)), L.Normalization(mean=[.1 * i for i in range(12)], variance=[1 + .05 * i for i in range(12)]),
        L.Dense(13, kernel_regularizer=R.L2(.01), activity_regularizer=R.L1(.001)), L.BatchNormalization(momentum=.9), L.Activation("relu"),
        L.Dense(9, bias_regularizer=R.L1(.02), kernel_regularizer=R.L1L2(.001, .002), activation="softplus"), L.LayerNormalization(),
        L.Dense(1, activation="sigmoid")], name="norms")


def cube():
    return keras.Sequential([
        keras.Input((5, 7)), L.Rescaling(.5, offset=.25), L.Dense(6, activation="tanh"), L.BatchNormalization(axis=-1, scale=False),
        L.LayerNormalization(axis=[1, 2], center=False), L.Reshape((3, -1)), L.LeakyReLU(), L.Dense(11, activation="selu"),
        L.BatchNormalization(axis=1, trainable=False), L.Flatten(), L.Dense(4, activation="softmax")], name="cube")


def towers():
    a, b = keras.Input((8,), name="a"), keras.Input((8,), name="b")
    i = keras.Input((8,)); encoder = keras.Model(i, L.Dense(10, activation="mish", name="code")(L.Dense(9, activation="hard_sigmoid", name="pre")(i)), name="encoder")
    head = keras.Sequential([keras.Input((10,)), L.Dense(10, activation="softsign", name="inner")], name="head")
    u, v = encoder(a), head(encoder(b))
    m = L.Concatenate()([L.Maximum()([u, v]), L.Average()([u, v]), L.Multiply()([u, v]), L.Subtract()([u, v]), L.Minimum()([u, v])])
    m = L.ELU(alpha=.7)(L.Dense(7, name="mixed")(m))
    return keras.Model([a, b], [L.Dense(5, activation="softmax", name="kind")(m), L.Dense(3, name="size")(L.ReLU(max_value=2., negative_slope=.1, threshold=.05)(m))], name="towers")


def main():
    OUT.mkdir(exist_ok=True)
    stored = lambda name: (MODELS / f"{name}.json").read_text().strip()
    classes = lambda n: [{"kind": "class", "classes": n}]
    write("two_dense", stored("two_dense"), classes(10))
    write("branches", stored("branches"), classes(5))
    write("regression", stored("regression"), [{"kind": "real", "shape": [2]}],
          compile_args={"optimizer": "adam", "loss": "mean_squared_error", "metrics": ["mean_absolute_error"]})
    write("uneven", stored("uneven").replace('"rate": 0.25', '"rate": 0.0'), classes(3), store_model=True)
    write("fashion_mnist", stored("fashion_mnist"), classes(10), most=256, scale=256.0)
    write("bench_dense", stored("bench_dense"), classes(1024), most=256)
    write("norms", model_text(norms, optimizer=keras.optimizers.Adam(.01), loss="binary_crossentropy", metrics=["accuracy"]),
          [{"kind": "binary", "width": 1}], store_model=True)
    write("cube", model_text(cube, optimizer=keras.optimizers.SGD(.05, momentum=.8, nesterov=True), loss="categorical_crossentropy", metrics=["accuracy"]),
          [{"kind": "one_hot", "classes": 4}], store_model=True)
    write("towers", model_text(towers, optimizer=keras.optimizers.AdamW(.005, weight_decay=.01), loss={"kind": "sparse_categorical_crossentropy", "size": keras.losses.Huber()},
                               loss_weights={"kind": 1.0, "size": 0.5}, metrics={"kind": ["accuracy"], "size": ["mean_squared_error"]}),
          [{"kind": "class", "classes": 5}, {"kind": "real", "shape": [3]}], store_model=True)


main()
