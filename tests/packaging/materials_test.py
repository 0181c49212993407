"""The bill of materials, and what the package depends on, against the binary itself: materials_test.py BINARY."""
import json
import os
import re
import subprocess
import tempfile
import unittest

from packaging import BINARY, DOCKER, packages_for, run


def materials(**environment):
    with tempfile.NamedTemporaryFile() as out:
        run("/usr/bin/python3", DOCKER / "sbom.py", "--version", "1.2.3", "--output", out.name, env={**os.environ, **environment})
        return json.load(out)


def packages_of_libraries():
    """The Debian packages of the shared libraries that the binary names."""
    text = run("ldd", BINARY)
    needed = re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", BINARY))
    paths = dict(re.findall(r"(\S+) => (\S+)", text))
    out = set()
    for library in needed:
        if library not in paths:  # the loader itself
            continue
        path = os.path.realpath(paths[library])
        found = subprocess.run(["dpkg", "-S", path], capture_output=True, text=True)
        if found.returncode != 0:  # the list has the place before /usr was merged
            found = subprocess.run(["dpkg", "-S", path.removeprefix("/usr")], capture_output=True, text=True, check=True)
        out.add(found.stdout.split(":")[0])
    return out


class Materials(unittest.TestCase):
    def test_package_depends_on_what_the_binary_needs_and_on_nothing_else(self):
        sanitizers = {"libasan8", "libubsan1", "libtsan2"}
        needed = packages_of_libraries() - sanitizers
        listed = set(packages_for("run"))
        # The C library comes with everything.
        self.assertEqual(needed - listed, {"libc6", "libgcc-s1"} & needed)
        # What libcurl verifies receivers of webhooks with is no library.
        self.assertEqual(listed - needed, {"ca-certificates"})

    def test_each_library_is_there_with_its_version(self):
        document = materials()
        packages = {package["name"]: package for package in document["packages"]}
        for name in sorted(packages_of_libraries() & set(packages_for("run"))) + packages_for("headers") + ["libc6"]:
            version = run("dpkg-query", "-W", "-f", "${Version}\n", name).splitlines()[0]
            self.assertEqual(packages[name]["versionInfo"], version)
            self.assertIn(f"pkg:deb/debian/{name}@".replace("+", "%2B"), packages[name]["externalRefs"][0]["referenceLocator"])
        self.assertEqual(packages["meshd"]["versionInfo"], "1.2.3")

    def test_relations_name_packages_of_the_document_and_reach_all_of_them(self):
        document = materials()
        ids = [package["SPDXID"] for package in document["packages"]]
        self.assertEqual(len(ids), len(set(ids)))
        reached, waiting = set(), ["SPDXRef-DOCUMENT"]
        edges = {}
        for relation in document["relationships"]:
            edges.setdefault(relation["spdxElementId"], []).append(relation["relatedSpdxElement"])
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += edges.get(name, [])
        self.assertEqual(reached - {"SPDXRef-DOCUMENT"}, set(ids))

    def test_the_same_inputs_give_the_same_document(self):
        first, second = (materials(SOURCE_DATE_EPOCH="1700000000") for _ in range(2))
        self.assertEqual(first, second)
        self.assertEqual(first["creationInfo"]["created"], "2023-11-14T22:13:20Z")


unittest.main(argv=["materials_test.py"])
