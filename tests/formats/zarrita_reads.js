// The arrays of a prefix as zarrita reads them, in Node (node zarrita_reads.js URL PREFIX NAME...) and in a page of another origin, which imports
// it. Gives {way: {name: bytes in hex}}.
import * as zarr from "zarrita";

const hex = (data) => {
  const bytes = data instanceof zarr.BoolArray ? Uint8Array.from(data, Number) : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
};

export async function read(url, prefix, names) {
  const told = {};
  for (const version of [2, 3]) {
    const open = version === 3 ? zarr.open.v3 : zarr.open.v2;
    const root = zarr.root(new zarr.FetchStore(`${url}/v1/zarr/v${version}/${prefix}`));
    const group = await open(root, { kind: "group" });
    if (group.attrs.title !== "all") throw new Error(`attributes: ${JSON.stringify(group.attrs)}`);
    const arrays = {};
    for (const name of names) {
      const array = await open(root.resolve(name), { kind: "array" });
      // Of rank 0, get() gives a number; the chunk has its bytes.
      const got = array.shape.length ? await zarr.get(array) : await array.getChunk([]);
      arrays[name] = hex(got.data);
    }
    told[`zarrita, v${version}`] = arrays;
  }
  return told;
}

if (globalThis.process?.argv) {
  const [url, prefix, ...names] = process.argv.slice(2);
  console.log(JSON.stringify(await read(url, prefix, names)));
}
