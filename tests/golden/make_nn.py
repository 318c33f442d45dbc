"""Writes nn.json and nn_names.json beside it: what Keras 3.15 (jax) makes of the small models of tests/nn_golden_test.cpp and of
tests/nn_test.cpp, which build the same ones under the same names. Run again only to add a case: pip install keras jax; python make_nn.py

Numbers are formulas of an index, so that neither side stores data: wave(i, s) = sin(1.1 (i + 1) + 2.3 s).
"""
import json, os, pathlib
os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import keras
import numpy as np
from keras import layers as L, losses, optimizers as O

jax.config.update("jax_default_matmul_precision", "highest")
CASES, SEQ = {}, keras.Sequential


def wave(shape, salt):
    n = int(np.prod(shape))
    return np.sin(1.1 * (np.arange(n) + 1) + 2.3 * salt).reshape(shape).astype("float32")


def classes(n, k): return ((np.arange(n) * 7 + 3) % k).astype("int32")


def target(kind, shape):
    if kind == "classes": return classes(int(np.prod(shape[:-1])), shape[-1]).reshape(shape[:-1])
    if kind == "one_hot": return np.eye(shape[-1], dtype="float32")[classes(int(np.prod(shape[:-1])), shape[-1])].reshape(shape)
    if kind == "binary": return ((np.arange(int(np.prod(shape))) * 5 + 1) % 3 % 2).reshape(shape).astype("float32")
    return wave(shape, 9) * 0.8


def case(name, model, loss, kinds, optimizer=None, steps=2, batch=5, metrics=None, x_scale=2.0, **compile_args):
    inputs, outputs = model.inputs, model.outputs
    for i, v in enumerate(model.variables):
        if v.path.endswith("count") or "seed" in v.path: continue
        value = wave(tuple(v.shape), i + 1) * (0.3 if v.path.endswith("variance") else 0.6)
        v.assign(value + 1 if v.path.endswith("variance") else value)
    for layer in model.layers:
        if isinstance(layer, L.Normalization): layer.finalize_state()   # it keeps a copy of its weights
    x = [wave((batch,) + tuple(t.shape[1:]), i) * x_scale for i, t in enumerate(inputs)]
    y = [target(k, (batch,) + tuple(t.shape[1:])) for k, t in zip(kinds, outputs)]
    one = lambda a: a[0] if len(a) == 1 else a
    model.compile(optimizer=optimizer or O.SGD(0.1), loss=loss, metrics=metrics, **compile_args)
    r = {"paths": [v.path for v in model.variables if "seed" not in v.path],
         "trained": [v.path for v in model.trainable_variables], "losses": []}
    for _ in range(steps):
        model.reset_metrics()
        r["losses"].append(float(model.train_on_batch(one(x), one(y), return_dict=True)["loss"]))
    model.reset_metrics()
    r["evaluated"] = {k: float(v) for k, v in model.test_on_batch(one(x), one(y), return_dict=True).items()}
    r["weights"] = {v.path: [float(a) for a in np.ravel(np.asarray(v))] for v in model.variables if "seed" not in v.path}
    p = model.predict_on_batch(one(x))
    r["predicted"] = [[float(a) for a in np.ravel(np.asarray(t))[:12]] for t in (p if isinstance(p, list) else [p])]
    CASES[name] = r
    keras.utils.clear_session(free_memory=False)


def dense(units=3, activation=None, n=4): return SEQ([keras.Input((n,)), L.Dense(units, activation=activation)])


for a in ("linear relu relu6 leaky_relu elu selu celu silu swish gelu sigmoid log_sigmoid sparse_sigmoid hard_sigmoid hard_silu hard_swish tanh "
          "hard_tanh tanh_shrink soft_shrink hard_shrink softplus sparse_plus squareplus softsign exponential mish softmax log_softmax").split():
    case("activation " + a, dense(3, a), "mse", ["numbers"], steps=1, x_scale=3.0)

# --- losses
sce, cce, bce = losses.SparseCategoricalCrossentropy, losses.CategoricalCrossentropy, losses.BinaryCrossentropy
acc = ["accuracy"]
case("loss sparse softmax", dense(3, "softmax"), "sparse_categorical_crossentropy", ["classes"], metrics=acc + ["sparse_categorical_crossentropy"])
case("loss sparse logits", dense(3), sce(from_logits=True), ["classes"], metrics=acc)
case("loss sparse plain", dense(3, "softplus"), "sparse_categorical_crossentropy", ["classes"], metrics=["acc"])
case("loss sparse time", SEQ([keras.Input((2, 4)), L.Dense(3, activation="softmax")]), "sparse_categorical_crossentropy", ["classes"], metrics=acc)
case("loss sparse sum", dense(3, "softmax"), sce(reduction="sum"), ["classes"], metrics=acc)
case("loss categorical softmax", dense(3, "softmax"), "categorical_crossentropy", ["one_hot"], metrics=acc)
case("loss categorical logits", dense(3), cce(from_logits=True, label_smoothing=0.1), ["one_hot"], metrics=acc)
case("loss categorical plain", dense(3, "softplus"), cce(label_smoothing=0.2), ["one_hot"], metrics=["categorical_accuracy"])
case("loss binary sigmoid", dense(1, "sigmoid"), "binary_crossentropy", ["binary"], metrics=acc)
case("loss binary wide", dense(3, "sigmoid"), "bce", ["binary"], metrics=["binary_accuracy", "BinaryCrossentropy"])
case("loss binary logits", dense(2), bce(from_logits=True, label_smoothing=0.1), ["binary"], metrics=["mae"])
case("loss binary plain", dense(2, "softsign"), bce(), ["binary"], metrics=["mse"])
case("loss mse", dense(3), "mean_squared_error", ["numbers"], metrics=["mse", "MAE", "accuracy", "mse"])
case("loss mae", dense(3), "MeanAbsoluteError", ["numbers"])
case("loss huber", dense(3), losses.Huber(delta=0.5), ["numbers"])
case("loss mse sum", dense(3), losses.MeanSquaredError(reduction="sum"), ["numbers"], O.SGD(0.01))

# --- optimizers
two = lambda: SEQ([keras.Input((4,)), L.Dense(3, activation="tanh"), L.Dense(2)])
for name, o in [("sgd", lambda: O.SGD()), ("momentum", lambda: O.SGD(0.05, momentum=0.9)), ("nesterov", lambda: O.SGD(0.05, momentum=0.9, nesterov=True)),
                ("decay", lambda: O.SGD(0.05, momentum=0.5, weight_decay=0.1)), ("clipnorm", lambda: O.SGD(0.1, clipnorm=0.3)),
                ("global_clipnorm", lambda: O.SGD(0.1, global_clipnorm=0.3)), ("global_clipnorm large", lambda: O.SGD(0.1, global_clipnorm=1e3)),
                ("clipvalue", lambda: O.SGD(0.1, clipvalue=0.05)), ("adam", lambda: O.Adam()), ("adam large", lambda: O.Adam(0.05, beta_1=0.8, beta_2=0.95, epsilon=1e-4)),
                ("adamw", lambda: O.AdamW(0.01)), ("adamw decay", lambda: O.AdamW(0.01, weight_decay=0.3, clipvalue=0.1))]:
    case("optimizer " + name, two(), "mse", ["numbers"], o(), steps=5)

# --- layers
def functional(make, *shapes):
    x = [keras.Input(s) for s in shapes]
    return keras.Model(x[0] if len(x) == 1 else x, make(*x))

m = ["numbers"]
case("batch_normalization", SEQ([keras.Input((4,)), L.Dense(3), L.BatchNormalization(), L.Dense(2)]), "mse", m, steps=3)
case("batch_normalization options", SEQ([keras.Input((3, 4)), L.BatchNormalization(axis=1, momentum=0.6, epsilon=0.1, scale=False), L.Dense(2)]), "mse", m, steps=3)
case("batch_normalization bare", SEQ([keras.Input((2, 3)), L.BatchNormalization(center=False, scale=False), L.Dense(2)]), "mse", m)
f = SEQ([keras.Input((4,)), L.Dense(3), L.BatchNormalization(), L.Dense(2)]); f.layers[1].trainable = False
case("batch_normalization frozen", f, "mse", m)
bn = L.BatchNormalization(name="bn", momentum=0.5)
case("batch_normalization shared", functional(lambda a, b: L.Concatenate()([bn(a), bn(b)]), (3,), (3,)), "mse", m)
case("layer_normalization", SEQ([keras.Input((4,)), L.Dense(5), L.LayerNormalization(), L.Dense(2)]), "mse", m)
case("layer_normalization axes", SEQ([keras.Input((3, 4)), L.LayerNormalization(axis=[1, 2], epsilon=0.01, center=False), L.Dense(2)]), "mse", m)
case("layer_normalization inner", SEQ([keras.Input((3, 4)), L.LayerNormalization(axis=1), L.Dense(2)]), "mse", m)
case("normalization", SEQ([keras.Input((4,)), L.Normalization(), L.Dense(2)]), "mse", m)
case("normalization given", SEQ([keras.Input((2, 4)), L.Normalization(mean=[0.1, 0.2, -0.3, 0.4], variance=[1.0, 0.5, 2.0, 0.25]), L.Dense(2)]), "mse", m)
case("normalization scalar", SEQ([keras.Input((4,)), L.Normalization(axis=None, mean=0.25, variance=4.0, invert=True), L.Dense(2)]), "mse", m)
case("normalization inner", SEQ([keras.Input((3, 4)), L.Normalization(axis=1), L.Dense(2)]), "mse", m)
case("rescaling", SEQ([keras.Input((4,)), L.Rescaling(0.25, offset=-1.0), L.Dense(2)]), "mse", m)
case("reshaping", SEQ([keras.Input((2, 6)), L.Reshape((3, -1)), L.Dense(2), L.Flatten(), L.Dense(2)]), "mse", m)
case("flatten channels first", SEQ([keras.Input((2, 3, 2)), L.Flatten(data_format="channels_first"), L.Dense(2)]), "mse", m)
case("dropout none", SEQ([keras.Input((4,)), L.Dropout(0.0), L.Dense(2)]), "mse", m)
case("relu layer", SEQ([keras.Input((4,)), L.Dense(6), L.ReLU(max_value=1.5, negative_slope=0.1, threshold=0.2), L.Dense(2)]), "mse", m)
case("relu slope", SEQ([keras.Input((4,)), L.Dense(6), L.ReLU(negative_slope=0.1), L.ReLU(max_value=0.4), L.Dense(2)]), "mse", m)
case("leaky elu", SEQ([keras.Input((4,)), L.Dense(6), L.LeakyReLU(), L.ELU(alpha=0.5), L.Dense(2)]), "mse", m)
case("softmax axis", SEQ([keras.Input((3, 4)), L.Dense(2), L.Softmax(axis=1), L.Dense(2)]), "mse", m)
case("gelu approximate", SEQ([keras.Input((4,)), L.Dense(3), L.Activation(lambda x: keras.activations.gelu(x, approximate=True))]), "mse", m)
for name, layer in [("add", L.Add), ("multiply", L.Multiply), ("average", L.Average), ("maximum", L.Maximum), ("minimum", L.Minimum)]:
    case("merge " + name, functional(lambda a, b, c: layer()([L.Dense(3)(a), b, c]), (2, 4), (3,), (2, 1)), "mse", m)
case("merge subtract", functional(lambda a, b: L.Subtract()([L.Dense(3)(a), b]), (2, 4), (2, 3)), "mse", m)
case("merge concatenate", functional(lambda a, b: L.Concatenate(axis=1)([L.Dense(3)(a), b]), (2, 4), (1, 3)), "mse", m)
case("regularizers", SEQ([keras.Input((4,)), L.Dense(3, kernel_regularizer="l2", bias_regularizer=keras.regularizers.L1(0.05), activity_regularizer=keras.regularizers.L1L2(0.02, 0.03)), L.Dense(2)]), "mse", m)

# --- models
def shared():
    x = keras.Input((4,), name="x"); d = L.Dense(4, activation="tanh", name="shared")
    return keras.Model(x, L.Dense(2, name="head")(L.Add(name="sum")([d(d(x)), x])))
case("model shared", shared(), "mse", m)

def nested():
    block = SEQ([keras.Input((4,)), L.Dense(4), L.BatchNormalization()], name="block")
    x = keras.Input((4,)); inner = keras.Model(x, L.Dense(4, name="a")(x), name="inner")
    y = keras.Input((4,)); return keras.Model(y, L.Dense(2, name="b")(inner(block(y))))
case("model nested", nested(), "mse", m)
n = nested(); n.get_layer("block").trainable = False
case("model nested frozen", n, "mse", m)

def many():
    x, z = keras.Input((4,), name="x"), keras.Input((2, 3), name="z")
    h = L.Dense(4, activation="tanh", name="h", kernel_regularizer="l2")(L.Concatenate()([x, L.Flatten()(z)]))
    return keras.Model([x, z], [L.Dense(3, activation="softmax", name="kind")(h), L.Dense(1, name="size")(L.Dense(2, name="deep")(h))])
case("model several", many(), {"kind": "sparse_categorical_crossentropy", "size": "mse"}, ["classes", "numbers"], O.Adam(0.01),
     loss_weights={"kind": 0.5, "size": 2.0}, metrics={"kind": ["accuracy"], "size": ["mae", "mse"]})

def short(v):
    """9 digits read back the same float32."""
    if isinstance(v, float): return float(f"{v:.9g}")
    if isinstance(v, dict): return {k: short(a) for k, a in v.items()}
    return [short(a) for a in v] if isinstance(v, list) else v


# --- names and paths, each in a fresh session
NAMES = {}


def names(make):
    keras.utils.clear_session(free_memory=False)
    m = make()
    NAMES[make.__name__] = {"name": m.name, "layers": [l.name for l in m.layers], "paths": [v.path for v in m.weights],
                            "trained": [v.path for v in m.trainable_weights]}


def inner(x=4):
    i = keras.Input((x,)); return keras.Model(i, L.BatchNormalization(name="bn")(L.Dense(4, name="a")(i)), name="inner")
def stack(): return SEQ([keras.Input((4,)), L.Dense(3), L.BatchNormalization(), L.ReLU(), L.LeakyReLU(), L.Dense(2), L.Activation("relu")])
def stack_in_graph():
    block = SEQ([keras.Input((4,)), L.Dense(3)], name="block"); x = keras.Input((4,)); return keras.Model(x, L.Dense(2)(block(x)))
def graph_in_stack(): return SEQ([keras.Input((4,)), inner(), L.Dense(2, name="b")], name="outer")
def graph_in_graph():
    f = inner(); x = keras.Input((4,)); return keras.Model(x, L.Dense(2)(f(x)))
def stack_in_stack():
    s = SEQ([keras.Input((4,)), L.Dense(3)], name="ss"); t = SEQ([L.Dense(3)], name="tt")
    return SEQ([keras.Input((4,)), s, t, L.Dense(2)], name="outer")
def unnamed_stacks(): return SEQ([keras.Input((4,)), SEQ([keras.Input((4,)), L.Dense(3)]), SEQ([keras.Input((3,)), L.Dense(4)]), L.Dense(2)])
def late_stack():
    s = SEQ([L.Dense(3), L.BatchNormalization()], name="late"); x = keras.Input((4,)); return keras.Model(x, s(x))
def stack_of_model_first(): return SEQ([inner(), L.Dense(2)])
def shared_with_inner():
    d = L.Dense(4, name="sh"); x = keras.Input((4,)); f = keras.Model(x, d(x), name="f"); y = keras.Input((4,)); return keras.Model(y, d(f(y)))
def frozen_inner():
    f = inner(); f.trainable = False; x = keras.Input((4,)); return keras.Model(x, L.Dense(2)(f(x)))
def depths():
    x = keras.Input((4,), name="x"); a = L.Dense(3, name="a")(x); b = L.Dense(3, name="b")(x); c = L.Dense(3, name="c")(b)
    return keras.Model(x, [L.Add(name="s")([a, c]), L.Dense(1, name="e")(a)])
def shared_depths():
    x = keras.Input((4,), name="x"); d = L.Dense(4, name="d"); e = L.Dense(4, name="e")(x)
    return keras.Model(x, [d(x), d(L.Dense(4, name="f")(e)), L.Dense(2, name="g")(d(e))])
def two_inputs():
    a, b = keras.Input((4,), name="a"), keras.Input((5,), name="b")
    return keras.Model([a, b], L.Dense(1, name="h")(L.Concatenate()([L.Dense(2, name="q")(b), L.Dense(2, name="p")(a)])))
for make in (stack, stack_in_graph, graph_in_stack, graph_in_graph, stack_in_stack, unnamed_stacks, late_stack, stack_of_model_first, shared_with_inner,
             frozen_inner, depths, shared_depths, two_inputs):
    names(make)
pathlib.Path(__file__).with_name("nn_names.json").write_text(
    "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in NAMES.items()) + "\n}\n")
pathlib.Path(__file__).with_name("nn.json").write_text(
    "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(short(v))}" for k, v in CASES.items()) + "\n}\n")
print(len(CASES), "cases")
