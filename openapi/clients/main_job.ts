// The main job (tests/conformance/main_job.py) with nothing but the typescript-fetch client that openapi-generator made:
// main_job.js URL DIGITS. Compiled beside the client, to CommonJS: its imports name no file endings.
import { readFileSync } from "node:fs";
import {
  ArraysApi, Configuration, DType, MeshesApi, ProgramsApi, ResponseError, ResultEncoding, RunsApi, SessionsApi,
} from "./typescript-fetch/index";
import type { Effect, MeshInput, RunAnswer, ShardingInput } from "./typescript-fetch/index";

const [url, digits] = process.argv.slice(2);
const names = ["b1", "b2", "w1", "w2"];
const specs: Record<string, string> = { images: "x,", labels: "x", b1: "y", b2: "", w1: ",y", w2: "y," };
const dtypes: Record<string, DType> = { "<f4": DType.Float32, "<i4": DType.Int32 };
const grid: MeshInput = { axisNames: ["x", "y"], shape: [4, 2], devices: [0, 1, 2, 3, 4, 5, 6, 7] };
const configuration = new Configuration({ basePath: url });
const arrays = new ArraysApi(configuration);
const sessions = new SessionsApi(configuration);
const runs = new RunsApi(configuration);

function must(condition: boolean, text: string): void {
  if (!condition) throw new Error(text);
}

async function main(): Promise<void> {
  const answers = JSON.parse(readFileSync(`${digits}/answers.json`, "utf8"));
  const mesh = await new MeshesApi(configuration).createMesh({ meshInput: grid });

  async function upload(name: string): Promise<string> {
    const data = readFileSync(`${digits}/${name}.npy`);
    const size = data.readUInt16LE(8);
    const head = data.subarray(10, 10 + size).toString();
    const descr = /'descr': '([^']+)'/.exec(head)![1];
    const shape = /'shape': \(([^)]*)\)/.exec(head)![1].split(",").filter((text) => text.trim()).map(Number);
    const value = { dtype: dtypes[descr], shape, base64: data.subarray(10 + size).toString("base64") };
    return (await arrays.createArray({ value, name, mesh: mesh.id, spec: specs[name] })).id;
  }

  async function stored(name: string): Promise<string> {
    const text = readFileSync(`${digits}/${name}.mlir`, "utf8");
    return (await new ProgramsApi(configuration).createProgram({ programInput: { format: "stablehlo", text, name } })).id;
  }

  const images = await upload("images");
  const labels = await upload("labels");
  let parameters: string[] = [];
  for (const name of names) parameters.push(await upload(name));
  const step = await stored("step");
  const predict = await stored("predict");
  const session = (await sessions.createSession({ sessionInput: { name: "digits from TypeScript" } })).id;

  const seen: string[] = [];
  const losses: number[] = [];
  for (let number = 0; number < answers.steps; ++number) {
    const first = (number * answers.batch) % answers.trained_images;
    const slice = `${first}:${first + answers.batch}`;
    const answer = await sessions.createJob({
      id: session,
      runInput: {
        program: { id: step },
        mesh: grid,
        callbacks: answers.step_callback,
        arguments: [...parameters.map((array) => ({ array })), { array: images, slice }, { array: labels, slice }],
        results: { encoding: ResultEncoding.Array },
      },
    });
    seen.push(...parameters);
    parameters = names.map((_, i) => answer.results[i].array!);
    losses.push(answer.effects[0].values[0].data);
  }

  const log: Effect[] = [];
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page = await sessions.listEffects({ id: session, after });
    log.push(...page.items);
    after = page.next == null ? undefined : Number(page.next);
  }
  must(log.length === answers.steps && log.every((entry, i) => entry.sequence === i + 1 && entry.name === "loss"), "the log has gaps");
  must(log.every((entry, i) => entry.values[0].data === losses[i]), "the log has other losses");
  const worst = Math.max(...losses.map((loss, i) => Math.abs(loss - answers.losses[i]) / Math.abs(answers.losses[i])));
  must(losses.length === answers.losses.length && worst <= answers.loss_rtol, `losses differ from JAX's by ${worst}`);

  for (const id of seen) {
    const status = await arrays.getArrayData({ id }).then(() => 200, (error: unknown) => (error as ResponseError).response.status);
    must(status === 410, `a donated parameter answers ${status}`);
  }
  let answer: RunAnswer | undefined;
  for (const cut of [undefined, { spec: [["x"], []] }, { spec: [["x", "y"], []] }] as (ShardingInput | undefined)[]) {
    answer = await runs.run({
      runInput: {
        program: { id: predict },
        mesh: grid,
        reshard: true,
        // null leaves a sharding to propagation; the generated type does not say so.
        inShardings: cut && ([null, null, null, null, cut] as ShardingInput[]),
        arguments: [...parameters.map((array) => ({ array })), { array: images, slice: ":" }],
      },
    });
    const predictions: number[] = answer.results[0].data;
    const differ = predictions.filter((digit, i) => digit !== answers.predictions[i]).length;
    must(differ <= answers.predictions_that_may_differ, `${differ} predictions differ from JAX's`);
  }
  const truth = new Int32Array(await (await arrays.getArrayData({ id: labels })).arrayBuffer());
  const hits = (answer!.results[0].data as number[]).filter((digit, i) => digit === truth[i]).length;
  console.log(
    `TypeScript client: ${answers.steps} steps, loss ${losses[0].toFixed(4)} -> ${losses[losses.length - 1].toFixed(4)}, ` +
      `at most ${worst.toExponential(1)} from JAX's, ${seen.length} donated parameters gone, ${hits} of ${truth.length} digits right`,
  );
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
