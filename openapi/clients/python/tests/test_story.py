"""A notebook, cell by cell: a classifier is trained on a server of eight devices from a process that has one.

Every number is compared with JAX's own in the process. Read it from the top; each function is a cell and goes on with
what those before it left in `book`.
"""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import meshd

book = types.SimpleNamespace()


@pytest.fixture(autouse=True)
def connected(server):
    if not hasattr(book, "m"):
        book.m = meshd.connect(server.url)


def test_1_four_lines():
    m = book.m
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(m.run(lambda x: x @ x.T, a), a @ a.T)


def test_2_the_data_goes_there_once_and_lies_on_a_mesh():
    """Points of three classes; rows over x. The mesh has eight devices, this process has one."""
    m = book.m
    rng = np.random.default_rng(0)
    labels = np.tile(np.arange(3, dtype=np.int32), 80)
    points = rng.standard_normal((240, 8)).astype(np.float32) + 2 * np.eye(3, 8, dtype=np.float32)[labels]
    book.mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    rows = NamedSharding(book.mesh, P("x"))
    book.points, book.labels = points, labels
    book.there = {"points": m.put(points, rows, name="points"), "labels": m.put(labels, rows, name="labels")}
    assert [each.shape for each in book.there["points"].shards] == [(60, 8)] * 8
    assert "<svg" in book.there["points"]._repr_html_()


def init(key):
    one, two = jax.random.split(key)
    return {
        "hidden": {"w": jax.random.normal(one, (8, 16)) * 0.3, "b": jnp.zeros(16)},
        "out": {"w": jax.random.normal(two, (16, 3)) * 0.3, "b": jnp.zeros(3)},
    }


def loss_of(parameters, points, labels):
    hidden = jax.nn.relu(points @ parameters["hidden"]["w"] + parameters["hidden"]["b"])
    logits = hidden @ parameters["out"]["w"] + parameters["out"]["b"]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))


def train_step(parameters, key, points, labels):
    """Gradient descent with a little noise from a typed key."""
    loss, gradient = jax.value_and_grad(loss_of)(parameters, points, labels)
    key, noise = jax.random.split(key)
    rate = 0.5 + 0.01 * jax.random.uniform(noise)
    io_callback(lambda *_: None, None, loss, ordered=True)
    return jax.tree.map(lambda p, g: p - rate * g, parameters, gradient), key, loss


def test_3_parameters_are_made_there():
    m = book.m
    book.parameters = m.run(init, jax.random.key(0), keep=True)
    here = jax.jit(init)(jax.random.key(0))
    for there, expected in zip(jax.tree.leaves(book.parameters), jax.tree.leaves(here), strict=True):
        assert isinstance(there, meshd.Array)
        np.testing.assert_allclose(np.asarray(there), expected, rtol=1e-6, atol=1e-6)


def test_4_training_donates_parameters_and_logs_its_loss():
    m = book.m
    step = m.jit(train_step, donate_argnums=(0, 1), keep=True)
    first = book.parameters["hidden"]["w"]
    parameters, key = book.parameters, jax.random.key(1)
    with m.session("training") as session:
        for _ in range(30):
            parameters, key, loss = session.run(step, parameters, key, book.there["points"], book.there["labels"])
        log = [float(effect.values[0]) for effect in session.effects(follow=False)]
    assert first.is_deleted(), "the first parameters were donated"
    assert len(log) == 30 and log[-1] == float(loss) and log[-1] < 0.4 < log[0]
    # The same thirty steps in this process.
    here, here_key = jax.jit(init)(jax.random.key(0)), jax.random.key(1)
    for expected in log:
        here, here_key, here_loss = jax.jit(train_step)(here, here_key, book.points, book.labels)
        np.testing.assert_allclose(expected, here_loss, rtol=1e-4)
    jax.effects_barrier()
    jax.tree.map(lambda a, b: np.testing.assert_allclose(np.asarray(a), b, rtol=1e-3, atol=1e-4), parameters, here)
    book.parameters = parameters


def test_5_a_look_inside(capsys):
    """Prints and callbacks are this process's own."""
    m = book.m
    history = []

    def evaluate(parameters, points, labels):
        loss = loss_of(parameters, points, labels)
        jax.debug.print("loss {loss:.3f} over {n} points", loss=loss, n=labels.shape[0])
        jax.debug.callback(lambda value: history.append(float(value)), loss)
        return loss

    loss = m.run(evaluate, book.parameters, book.there["points"], book.there["labels"])
    assert history == [float(loss)]
    assert capsys.readouterr().out == f"loss {loss:.3f} over 240 points\n"


def test_6_a_python_function_decides_while_the_program_runs():
    m = book.m
    asked = []

    def enough(loss):
        asked.append(float(loss))
        return np.bool_(len(asked) >= 4)

    def descend(parameters, points, labels):
        def body(state):
            parameters, _ = state
            loss, gradient = jax.value_and_grad(loss_of)(parameters, points, labels)
            stop = io_callback(enough, jax.ShapeDtypeStruct((), bool), loss, ordered=True)
            return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradient), stop

        return jax.lax.while_loop(lambda state: ~state[1], body, (parameters, False))[0]

    book.parameters = m.run(descend, book.parameters, book.there["points"], book.there["labels"], keep=True)
    assert len(asked) == 4 and asked == sorted(asked, reverse=True)


def test_7_what_would_it_cost():
    text = book.m.explain(loss_of, book.parameters, book.there["points"], book.there["labels"])
    assert "@main" in text and "A device:" in text


def test_8_a_mistake():
    with pytest.raises(TypeError, match="dot_general"):  # JAX's own, from the line that has it
        book.m.run(lambda p, x: x.T @ p["out"]["w"], book.parameters, book.there["points"])
    book.there["labels"].delete()
    with pytest.raises(RuntimeError, match="deleted"):
        book.m.run(loss_of, book.parameters, book.there["points"], book.there["labels"])


def test_9_the_parameters_come_home():
    home = jax.tree.map(np.asarray, book.parameters, is_leaf=lambda each: isinstance(each, meshd.Array))
    predicted = (
        jax.nn.relu(book.points @ home["hidden"]["w"] + home["hidden"]["b"]) @ home["out"]["w"] + home["out"]["b"]
    )
    assert (predicted.argmax(1) == book.labels).mean() > 0.8
    book.m.close()
