"""What the test shims (fault_shim.cpp, allocation_shim.cpp) do to a server: words of eight bytes that the test and the server share."""
import mmap
import struct
import tempfile

YEAR = 31_557_600  # seconds
FATAL = 3  # the exit code of a server whose disk has failed


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


class Faults(Shim):
    """What fault_shim.cpp does to a server, from the next call on."""

    def __init__(self, library):
        super().__init__(library, 5)

    def set(self, stall=0.0, clock=0, no_threads=False, failing_sync=0):
        """Seconds that syncs take; seconds that the clock is wrong by; which of the next syncs is the first that fails (0: none)."""
        self.put(0, int(stall * 1e6), int(clock), int(no_threads))
        self.put(4, failing_sync)

    def hits(self):
        return self.get(3)
