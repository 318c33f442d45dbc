"""Writes model files with Keras itself to tests/keras_files/, and to expected.json there what Keras says about each model.

Run again only to add a model: `pip install keras==3.15.1 jax` and then `python tests/golden/make_keras_files.py`. No test needs Keras.
"""
import json, os, pathlib

os.environ["KERAS_BACKEND"] = "jax"
import keras
from keras import initializers as I, layers as L, regularizers as R

OUT = pathlib.Path(__file__).parent.parent / "keras_files"
EXPECTED = {}


def paths_of(model):
    """As in make_golden.py: Keras' own paths, but of a model read again from JSON too."""
    prefix, result = f"{model.name}/" if isinstance(model, keras.Sequential) else "", {}
    for layer in model.layers:
        if isinstance(layer, keras.Model): result |= paths_of(layer)
        else: result |= {id(v): f"{prefix}{layer.name}/{v.name}" for v in layer.weights}
    return result


def write(name, model, **compile_args):
    if compile_args: model.compile(**compile_args)
    (OUT / f"{name}.json").write_text(model.to_json() + "\n")
    model = keras.models.model_from_json(model.to_json())  # what Keras makes of the file: a layer of two models is two layers then
    paths = paths_of(model)
    names = lambda tensors: [[t._keras_history.operation.name, list(t.shape[1:])] for t in tensors]
    outputs = names(model.outputs)
    made = getattr(model, "_outputs_struct", None)
    if isinstance(made, dict): outputs = [[key, shape] for key, (_, shape) in zip(sorted(made), outputs)]
    EXPECTED[name] = {"variables": [[paths[id(v)], list(v.shape), v.trainable] for v in model.weights if id(v) in paths],
                      "inputs": names(model.inputs), "outputs": outputs}
    keras.utils.clear_session()


def unary():
    return keras.Sequential([
        keras.Input((6, 4), name="pixels"), L.Rescaling(1 / 255, offset=-.5), L.Normalization(axis=-1), L.Normalization(axis=None, mean=.5, variance=2.),
        L.Normalization(axis=[1, 2], invert=True), L.Dense(5, activation="relu", use_bias=False), L.BatchNormalization(momentum=.9, epsilon=1e-4, center=False),
        L.LayerNormalization(axis=[1, 2], epsilon=1e-5), L.LayerNormalization(scale=False), L.ReLU(), L.ReLU(max_value=6., negative_slope=.1, threshold=.2),
        L.LeakyReLU(negative_slope=.2), L.ELU(alpha=.5), L.Softmax(), L.Softmax(axis=1), L.Activation("tanh"), L.Dropout(.5), L.Dropout(.1, seed=7),
        L.Reshape((5, -1)), L.Reshape((-1,)), L.Reshape((3, 10)), L.Flatten(), L.Dense(3, activation="softmax")], name="unary")


def merging():
    a, b = keras.Input((4, 3), name="a"), keras.Input((4, 3), name="b")
    parts = [L.Add()([a, b]), L.Subtract()([a, b]), L.Multiply()([a, b, a]), L.Average()([a, b]), L.Maximum()([a, b]), L.Minimum()([a, b])]
    return keras.Model([a, b], L.Concatenate(axis=1)([L.Concatenate()(parts[:3]), L.Concatenate(axis=-1)(parts[3:])]), name="merging")


def nested():
    i = keras.Input((8,)); fork = keras.Model(i, [L.Dense(5, name="fork_a")(i), L.Dense(6, name="fork_b")(i)], name="fork")
    j = keras.Input((8,)); chain = keras.Model(j, L.Dense(8, name="chain_d")(j), name="chain")
    stack = keras.Sequential([keras.Input((8,)), L.Dense(8, name="d"), chain], name="stack")
    x, y = keras.Input((8,), name="x"), keras.Input((8,), name="y")
    first, second = fork(stack(x)), fork(stack(y))
    return keras.Model([x, y], [first[0], second[1], chain(x), L.Add(name="joined")([first[1], second[1]])], name="nested")


def out_of_order():
    x = keras.Input((4,), name="x"); a, b = L.Dense(4, name="a"), L.Dense(4, name="b")
    return keras.Model(x, a(b(a(b(x)))), name="out_of_order")


def dicts():
    i = {"left": keras.Input((3,), name="left"), "right": keras.Input((2,), name="right")}
    inner = keras.Model(i, {"u": L.Dense(4, name="dense_u")(i["left"]), "v": L.Dense(5, name="dense_v")(i["right"])}, name="inner")
    x, y = keras.Input((3,), name="x"), keras.Input((2,), name="y")
    made = inner({"right": y, "left": x})
    return keras.Model({"x": x, "y": y}, {"one": L.Dense(1, name="head")(made["v"]), "two": made["u"]}, name="dicts")


def initialised():
    kinds = [I.Zeros(), I.Ones(), I.Constant(.5), I.RandomNormal(0., .02, seed=3), I.RandomUniform(-.1, .2), I.TruncatedNormal(.1, .3), I.VarianceScaling(2., "fan_avg", "untruncated_normal"),
             I.VarianceScaling(1., "fan_out", "uniform"), I.GlorotUniform(seed=keras.random.SeedGenerator(5)), I.GlorotNormal(), I.HeNormal(), I.HeUniform(), I.LecunNormal(), I.LecunUniform(), I.Orthogonal(gain=1.5), I.Identity()]
    return keras.Sequential([keras.Input((4,))] + [L.Dense(4, kernel_initializer=k) for k in kinds] +
                            [L.Dense(4, kernel_regularizer=R.L1(.1), bias_regularizer=R.L2(.2), activity_regularizer=R.L1L2(.3, .4)),
                             L.Dense(2, kernel_regularizer="l2", trainable=False)], name="initialised")


def activations():
    names = "celu elu exponential gelu hard_sigmoid hard_silu hard_tanh leaky_relu linear log_sigmoid log_softmax mish relu relu6 selu sigmoid silu softmax softplus softsign tanh".split()
    return keras.Sequential([keras.Input((5,))] + [L.Activation(n) for n in names] + [L.Dense(3, activation=L.LeakyReLU(.4)), L.Activation(L.ReLU(max_value=6.)), L.Dense(2, activation=keras.activations.swish)], name="activations")


def operations():
    x, y = keras.Input((3,), name="x"), keras.Input((3,), name="y")
    return keras.Model([x, y], L.Dense(1, name="d")((x * 2. + y / 4. - 1.) * (1. - x) - keras.ops.maximum(x, y)), name="operations")


def frozen():
    i = keras.Input((4,)); inner = keras.Model(i, L.BatchNormalization(name="bn")(L.Dense(3, name="pre")(i)), name="inner"); inner.trainable = False
    x = keras.Input((4,), name="x")
    return keras.Model(x, L.Dense(2, name="post")(inner(x)), name="frozen")


def unnamed():
    return keras.Sequential([L.Dense(3, activation="relu"), L.Dense(2)])


def half():
    return keras.Sequential([keras.Input((4,), batch_size=8, dtype="float16"), L.Dense(3, dtype="mixed_bfloat16")], name="half")


def built():
    model = unnamed(); model.build((None, 7)); return model


for old in OUT.glob("*.json"): old.unlink()
write("unary", unary(), optimizer="sgd", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
write("merging", merging())
write("nested", nested(), optimizer=keras.optimizers.Adam(.01, beta_1=.8, weight_decay=.1, clipnorm=1.), loss=["mse", None, keras.losses.Huber(), keras.losses.MeanAbsoluteError(reduction="sum")],
      loss_weights=[1., 1., .5, .25], metrics=[["mae"], None, ["mse", "mae"], []])
write("out_of_order", out_of_order(), optimizer=keras.optimizers.AdamW(global_clipnorm=2.), loss=keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=.1),
      metrics=[keras.metrics.BinaryAccuracy(threshold=.3, name="right"), keras.metrics.MeanSquaredError()])
write("dicts", dicts(), optimizer=keras.optimizers.SGD(.5, momentum=.9, nesterov=True, clipvalue=.25), loss={"one": "mean_squared_error", "two": keras.losses.CategoricalCrossentropy()}, loss_weights={"one": .25, "two": 2.},
      metrics={"two": ["accuracy", "categorical_crossentropy"]})
write("initialised", initialised())
write("activations", activations())
write("operations", operations())
write("frozen", frozen())
write("half", half())
write("built", built())
model = unnamed(); (OUT / "shapeless.json").write_text(model.to_json() + "\n")
(OUT / "expected.json").write_text(json.dumps(EXPECTED) + "\n")
print(f"{len(EXPECTED)} models with Keras {keras.__version__}")
