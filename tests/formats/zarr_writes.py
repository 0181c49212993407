"""Writes arrays by zarr-python 3 and xarray through the stores that can PUT: zarr_writes.py URL. Prints {path: bytes in hex} of what it wrote, as
JSON. The caller commits."""
import asyncio
import json
import sys
import warnings

import numpy as np
import obstore.store
import xarray
import zarr
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

warnings.filterwarnings("ignore", message="Consolidated metadata is currently not part")
URL = sys.argv[1]
random = np.random.default_rng(5)
wrote = {}


class HttpStore(zarr.storage.ObjectStore):
    """obstore's store for HTTP has no "create"; the way of other stores is to look first."""

    set_if_not_exists = zarr.abc.store.Store.set_if_not_exists


def obstore_at(path):
    return HttpStore(obstore.store.HTTPStore(URL + path, client_options={"allow_http": True}))


def write_all(group, prefix, version):
    """Whole arrays, parts of chunks (read, changed, written), chunks of nothing but the fill value, rank 0."""
    codecs = {"none": None, "zstd": ZstdCodec(), "gzip": GzipCodec(), "blosc": BloscCodec()} if version == 3 else {"none": None}
    if version == 2:
        import numcodecs
        codecs.update(zstd=numcodecs.Zstd(), gzip=numcodecs.GZip(), blosc=numcodecs.Blosc())
    for name, codec in codecs.items():
        data = random.normal(size=(70, 33)).astype("float32")
        array = group.create_array(name, shape=data.shape, chunks=(20, 16), dtype="float32", compressors=codec, fill_value=2.5)
        array[:50] = data[:50]
        array[45:52, 3:7] = 7.0  # of chunks that are there and of others
        expected = np.full(data.shape, 2.5, "float32")
        expected[:50] = data[:50]
        expected[45:52, 3:7] = 7.0
        wrote[f"{prefix}/{name}"] = expected.tobytes().hex()
        array.attrs["units"] = name
    scalar = group.create_array("scalar", shape=(), dtype="int64")
    scalar[...] = -5
    wrote[f"{prefix}/scalar"] = np.int64(-5).tobytes().hex()
    group.create_array("empty", shape=(0, 3), chunks=(1, 3), dtype="int8")
    wrote[f"{prefix}/empty"] = ""


for version in (3, 2):
    base = f"/v1/zarr/v{version}-pending/"
    write_all(zarr.open_group(obstore_at(f"{base}ob{version}"), mode="a", zarr_format=version), f"ob{version}", version)
    write_all(zarr.open_group(f"{URL}{base}fs{version}", mode="a", zarr_format=version), f"fs{version}", version)
    dataset = xarray.Dataset({"t": (("time", "x"), random.normal(size=(6, 4)), {"units": "K"}), "n": (("time",), np.arange(6, dtype="int32"))},
                             coords={"time": np.arange(6)}, attrs={"title": "written"})
    dataset.chunk({"time": 2}).to_zarr(f"{URL}{base}xr{version}", mode="a", consolidated=False, zarr_format=version)
    for name, variable in dataset.variables.items():
        wrote[f"xr{version}/{name}"] = variable.values.tobytes().hex()
print(json.dumps(wrote))
