"""What the test shims (fault_shim.cpp, allocation_shim.cpp) do to a server: words of eight bytes that the test and the server share."""
import mmap
import struct
import tempfile


class Shim:
    """A shared object that is preloaded into a server. It reads and writes `words` integers, all 0 at first."""

    def __init__(self, library, words):
        self.library = library
        self.file = tempfile.NamedTemporaryFile(prefix="meshd-shim-")
        self.file.write(bytes(8 * words))
        self.file.flush()
        self.shared = mmap.mmap(self.file.fileno(), 8 * words)

    def launcher(self):
        return ["env", f"LD_PRELOAD={self.library}", f"SHIM_WORDS={self.file.name}"]

    def put(self, first, *values):
        self.shared[8 * first:8 * (first + len(values))] = struct.pack(f"<{len(values)}q", *values)

    def get(self, word):
        return struct.unpack_from("<q", self.shared, 8 * word)[0]
