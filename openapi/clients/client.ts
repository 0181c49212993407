// Upload, run, download and read the log with a client whose types openapi-typescript made from the contract.
import createClient from "openapi-fetch";
import type { paths } from "./api";

const client = createClient<paths>({ baseUrl: process.argv[2] });

function must<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.error !== undefined || answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const text = `func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}`;

const mesh = must(await client.POST("/v1/meshes", { body: { axis_names: ["x"], shape: [2], devices: [0, 1] } }));
const array = must(
  await client.POST("/v1/arrays", {
    params: { query: { mesh: mesh.id, spec: "x" } },
    body: { dtype: "float32", shape: [4], data: [1, 2, 3, 4] },
  }),
);
const session = must(await client.POST("/v1/sessions", { body: {} }));
const run = must(
  await client.POST("/v1/run", {
    body: {
      program: { format: "stablehlo", text },
      arguments: [{ array: array.id }],
      results: { encoding: "array" },
      session: session.id,
    },
  }),
);
if (typeof run === "string" || !("results" in run)) throw new Error("the run was not waited for");
const result = run.results[0].array;
if (!result) throw new Error("the result was not stored");
const bytes = must(
  await client.GET("/v1/arrays/{id}/data", { params: { path: { id: result } }, parseAs: "arrayBuffer" }),
) as unknown as ArrayBuffer;
const got = [...new Float32Array(bytes)];
if (got.join() !== "2,4,6,8") throw new Error(`expected 2,4,6,8, got ${got}`);
must(await client.GET("/v1/sessions/{id}/effects", { params: { path: { id: session.id } } }));
const raw = new Float32Array([1, 2, 3, 4]);
const binary = { body: raw as unknown as string, bodySerializer: (bytes: unknown) => bytes as BodyInit, headers: { "Content-Type": "application/octet-stream" } };
const sent = must(await client.POST("/v1/arrays:upload", { ...binary, params: { query: { dtype: "float32", shape: "4", name: "client/ts" } } }));
const back = must(
  await client.GET("/v1/arrays/by-name/{name}/data", { params: { path: { name: "client/ts" } }, parseAs: "arrayBuffer" }),
) as unknown as ArrayBuffer;
if ([...new Float32Array(back)].join() !== "1,2,3,4" || sent.name !== "client/ts") throw new Error("the upload came back otherwise");
must(await client.DELETE("/v1/arrays", { params: { query: { prefix: "client/ts" } } }));
const refused = await client.GET("/v1/arrays/{id}", { params: { path: { id: "arr_nothing" } } });
if (refused.error?.code !== "not_found") throw new Error("expected not_found");
console.log("TypeScript client: upload, run, download, log");
