"""The main job (tests/conformance/main_job.py) with nothing but the Python client that openapi-generator made: main_job.py URL DIGITS."""

import array
import ast
import base64
import json
import pathlib
import sys

import openapi_client as api

DTYPES = {"<f4": api.DType.FLOAT32, "<i4": api.DType.INT32}
MESH = api.MeshInput(axis_names=["x", "y"], shape=[4, 2], devices=list(range(8)))
NAMES = ("b1", "b2", "w1", "w2")
SPECS = {"images": "x,", "labels": "x", "b1": "y", "b2": "", "w1": ",y", "w2": "y,"}

url, digits = sys.argv[1], pathlib.Path(sys.argv[2])
answers = json.loads((digits / "answers.json").read_text())
client = api.ApiClient(api.Configuration(host=url))
arrays, programs, runs, sessions = api.ArraysApi(client), api.ProgramsApi(client), api.RunsApi(client), api.SessionsApi(client)
mesh = api.MeshesApi(client).create_mesh(MESH)


def upload(name):
    data = (digits / f"{name}.npy").read_bytes()
    size = int.from_bytes(data[8:10], "little")
    head = ast.literal_eval(data[10:10 + size].decode())
    value = api.Value(dtype=DTYPES[head["descr"]], shape=list(head["shape"]), base64=base64.b64encode(data[10 + size:]).decode())
    return arrays.create_array(value, name=name, mesh=mesh.id, spec=SPECS[name]).id


def stored(name):
    return programs.create_program(api.ProgramInput(format="stablehlo", text=(digits / f"{name}.mlir").read_text(), name=name)).id


images, labels = upload("images"), upload("labels")
parameters = {name: upload(name) for name in NAMES}
step, predict = stored("step"), stored("predict")
session = sessions.create_session(session_input=api.SessionInput(name="digits from Python")).id
callbacks = {number: api.CallbackBinding(**binding) for number, binding in answers["step_callback"].items()}

seen, losses = [], []
for number in range(answers["steps"]):
    first = number * answers["batch"] % answers["trained_images"]
    batch = f"{first}:{first + answers['batch']}"
    answer = sessions.create_job(session, api.RunInput(
        program=api.ProgramChoice(id=step), mesh=MESH, callbacks=callbacks,
        arguments=[api.Argument(array=parameters[name]) for name in NAMES]
        + [api.Argument(array=images, slice=batch), api.Argument(array=labels, slice=batch)],
        results=api.ResultOptions(encoding=api.ResultEncoding.ARRAY)))
    seen += parameters.values()
    parameters = {name: result.array for name, result in zip(NAMES, answer.results)}
    losses.append(answer.effects[0].values[0].data)

log, after = [], 0
while after is not None:
    page = sessions.list_effects(session, after=after)
    log += page.items
    after = page.next if page.next is None else int(page.next)
assert [entry.sequence for entry in log] == list(range(1, answers["steps"] + 1)), "the log has gaps"
assert [entry.values[0].data for entry in log] == losses and {entry.name for entry in log} == {"loss"}
worst = max(abs(loss - expected) / abs(expected) for loss, expected in zip(losses, answers["losses"]))
assert len(losses) == len(answers["losses"]) and worst <= answers["loss_rtol"], f"losses differ from JAX's by {worst}"


def is_gone(name):
    try:
        arrays.get_array_data(name)
    except api.ApiException as refused:
        return refused.status == 410
    return False


assert all(map(is_gone, seen)), "donated parameters can still be read"
# A generated list loses its nulls; an object without fields leaves a sharding to propagation as well.
anyhow = [api.ShardingInput()] * 4
for shardings in (None, anyhow + [api.ShardingInput(spec=[["x"], []])], anyhow + [api.ShardingInput(spec=[["x", "y"], []])]):
    answer = runs.run(api.RunInput(program=api.ProgramChoice(id=predict), mesh=MESH, reshard=True, in_shardings=shardings,
                                   arguments=[api.Argument(array=parameters[name]) for name in NAMES]
                                   + [api.Argument(array=images, slice=":")]))
    differ = sum(a != b for a, b in zip(answer.results[0].data, answers["predictions"]))
    assert differ <= answers["predictions_that_may_differ"], f"{differ} predictions differ from JAX's"
truth = array.array("i", bytes(arrays.get_array_data(labels))).tolist()
hits = sum(a == b for a, b in zip(answer.results[0].data, truth))
print(f"Python client: {answers['steps']} steps, loss {losses[0]:.4f} -> {losses[-1]:.4f}, at most {worst:.1e} from JAX's, "
      f"{len(seen)} donated parameters gone, {hits} of {len(truth)} digits right")
