"""Upload, run, download and read the log with the Python client that openapi-generator made: client.py URL."""

import array
import sys

import openapi_client as api

TEXT = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""

client = api.ApiClient(api.Configuration(host=sys.argv[1]))
arrays, runs, sessions = api.ArraysApi(client), api.RunsApi(client), api.SessionsApi(client)
mesh = api.MeshesApi(client).create_mesh(api.MeshInput(axis_names=["x"], shape=[2], devices=[0, 1]))
stored = arrays.create_array(api.Value(dtype=api.DType.FLOAT32, shape=[4], data=[1, 2, 3, 4]), mesh=mesh.id, spec="x")
assert stored.shard_shape == [2] and stored.sharding.spec == [["x"]], stored
session = sessions.create_session(session_input=api.SessionInput(name="client"))
answer = runs.run(api.RunInput(
    program=api.ProgramChoice(format="stablehlo", text=TEXT), arguments=[api.Argument(array=stored.id)],
    results=api.ResultOptions(encoding=api.ResultEncoding.ARRAY), session=session.id))
data = array.array("f", arrays.get_array_data(answer.results[0].array))
assert data.tolist() == [2, 4, 6, 8], data
assert sessions.list_effects(session.id).items == []
raw = array.array("f", [1, 2, 3, 4]).tobytes()
sent = arrays.upload_array(raw, dtype=api.DType.FLOAT32, shape="4", name="client/raw", unique=True)
assert arrays.get_array_data_by_name("client/raw") == raw
assert arrays.put_array_data_by_name("client/raw", raw[::-1]).version == 2
assert arrays.get_array_data(sent.id) == raw[::-1]
assert arrays.delete_arrays("client/raw").deleted == 1
try:
    arrays.get_array("arr_" + "0" * 36)
    raise AssertionError("expected not_found")
except api.ApiException as refused:
    assert refused.status == 404 and '"not_found"' in refused.body, refused
print("Python client: upload, run, download, log")
