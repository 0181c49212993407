"""The arrays of a prefix as zarr-python (2 or 3, whichever there is) and xarray with dask read them: zarr_reads.py URL PREFIX. Prints
{way: {path: bytes in hex}} as JSON. A warning ends it."""
import json
import sys
import warnings

import numpy as np
import xarray
import zarr

warnings.simplefilter("error")
# Of the libraries among themselves.
for words in ("Numcodecs codecs are not in the Zarr version 3", "The data type .* does not have a Zarr V3 specification", ".*is deprecated"):
    warnings.filterwarnings("ignore", message=words)
URL, PREFIX = sys.argv[1:3]
IS_3 = int(zarr.__version__.split(".")[0]) >= 3


def of_group(group, at=""):
    out = {}
    for name, array in group.arrays():
        out[at + name] = np.asarray(array[...]).tobytes().hex()
    for name, below in group.groups():
        out.update(of_group(below, at + name + "/"))
    return out


def of_dataset(url, version):
    # Version 2 has the fill value as the mark of missing values, which makes floats of integers.
    dataset = xarray.open_zarr(url, chunks={}, mask_and_scale=version == 3, **({"zarr_format": version} if IS_3 else {}))
    assert dataset.chunks, "by dask"
    return {name: np.asarray(variable.compute().data).tobytes().hex() for name, variable in dataset.variables.items()}


told = {}
for version in (3, 2) if IS_3 else (2,):
    url = f"{URL}/v1/zarr/v{version}/{PREFIX}"
    if IS_3:
        told[f"zarr 3, group, v{version}"] = of_group(zarr.open_group(url, mode="r"))
        told[f"zarr 3, by path, v{version}"] = {"float32": np.asarray(zarr.open_array(url + "/float32", mode="r")[...]).tobytes().hex()}
        group = zarr.open_group(url, mode="r")
        assert group.attrs["title"] == "all" and group["float32"].attrs["units"] == "K", dict(group.attrs)
        assert group.metadata.consolidated_metadata is not None
    else:
        told["zarr 2, consolidated"] = of_group(zarr.open_consolidated(url, mode="r"))
    told[f"xarray, v{version}"] = of_dataset(url, version)
print(json.dumps(told))
