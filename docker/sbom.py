"""The bill of materials of a meshd package or image, as SPDX 2.3 JSON: sbom.py [--version V] [--root FOLDER] [--output FILE].

What the binary runs with (docker/packages.txt: run) with all that these packages depend on, and the libraries whose headers were compiled into
it (headers); each with its version, source and licenses as dpkg and debian/copyright of this machine, or of the Debian in FOLDER, have them.
The time is SOURCE_DATE_EPOCH where that is set, so that the same inputs give the same file."""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
FIELDS = ("Package", "Version", "Architecture", "source:Package", "source:Version", "Homepage", "Provides", "Pre-Depends", "Depends", "db:Status-Status")


def packages_for(use):
    """The names of packages.txt with this use."""
    lines = (line.split() for line in (HERE / "packages.txt").read_text().splitlines() if not line.startswith("#"))
    return [line[0] for line in lines if use in line[1:]]


def installed(root):
    """{name: fields} of the packages that dpkg has installed there."""
    form = "".join("${%s}\t" % field for field in FIELDS) + "\n"
    text = subprocess.run(["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", form], check=True, capture_output=True, text=True).stdout
    rows = (dict(zip(FIELDS, line.split("\t"))) for line in text.splitlines())
    return {row["Package"]: row for row in rows if row["db:Status-Status"] == "installed"}


def names_in(relation):
    """[[alternatives] ...] of a Depends line, without versions and architectures."""
    return [[re.split(r"[\s:(]", one.strip(), maxsplit=1)[0] for one in entry.split("|")] for entry in relation.split(",") if entry.strip()]


class Dependencies:
    def __init__(self, packages):
        self.packages = packages
        self.providers = {}
        for name, fields in packages.items():
            for (provided, *_) in names_in(fields["Provides"]):
                self.providers.setdefault(provided, name)

    def of(self, name):
        """The installed packages that the package's Depends and Pre-Depends stand for."""
        fields = self.packages[name]
        out = []
        for alternatives in names_in(fields["Pre-Depends"]) + names_in(fields["Depends"]):
            found = next((self.packages.get(one) and one or self.providers.get(one) for one in alternatives
                          if one in self.packages or one in self.providers), None)
            if found is None:
                raise SystemExit(f"sbom.py: {name} depends on {' | '.join(alternatives)}, which is not installed")
            out.append(found)
        return sorted(set(out) - {name})

    def closure(self, names):
        done, waiting = set(), list(names)
        while waiting:
            name = waiting.pop()
            if name not in done:
                done.add(name)
                waiting += self.of(name)
        return sorted(done)


def licenses_of(root, name):
    """The short names of licenses in debian/copyright; empty where it is not machine-readable."""
    try:
        text = (pathlib.Path(root or "/") / "usr/share/doc" / name / "copyright").read_text(errors="replace")
    except OSError:
        return []
    if not re.search(r"(?m)^Format:", text):
        return []
    return sorted(set(re.findall(r"(?m)^License:[ \t]*(\S.*?)\s*$", text)))


def spdx_id(name):
    return "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", name.replace("+", "plus"))


def package_of(fields, root):
    name, version, architecture = fields["Package"], fields["Version"], fields["Architecture"]
    licenses = licenses_of(root, name)
    out = {
        "SPDXID": spdx_id(name), "name": name, "versionInfo": version, "supplier": "Organization: Debian", "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
        "sourceInfo": f"built from the source package {fields['source:Package']} {fields['source:Version']}",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:deb/debian/{name.replace('+', '%2B')}@{version.replace(':', '%3A').replace('+', '%2B').replace('~', '%7E')}?arch={architecture}"}],
    }
    if fields["Homepage"]:
        out["homepage"] = fields["Homepage"]
    if licenses:
        out["licenseComments"] = "debian/copyright names: " + "; ".join(licenses)
    return out


def document(version, root=""):
    packages = installed(root)
    run, headers = packages_for("run"), packages_for("headers")
    missing = [name for name in run + headers if name not in packages]
    if root:  # an image has what runs; what was compiled in was on the machine that compiled
        headers, missing = [], [name for name in run if name not in packages]
    if missing:
        raise SystemExit(f"sbom.py: not installed here, and so of no known version: {' '.join(missing)}")
    dependencies = Dependencies(packages)
    # An image has more than the binary needs: all that is installed there.
    listed = sorted(packages) if root else sorted(set(dependencies.closure(run)) | set(headers))
    meshd = {"SPDXID": "SPDXRef-Package-meshd", "name": "meshd", "versionInfo": version, "supplier": "NOASSERTION", "downloadLocation": "NOASSERTION",
             "filesAnalyzed": False, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION",
             "primaryPackagePurpose": "APPLICATION"}
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", meshd["SPDXID"])]
    relations += [(meshd["SPDXID"], "DEPENDS_ON", spdx_id(name)) for name in run]
    relations += [(meshd["SPDXID"], "STATIC_LINK", spdx_id(name)) for name in headers]
    relations += [(spdx_id(name), "DEPENDS_ON", spdx_id(other)) for name in listed if name not in headers for other in dependencies.of(name)]
    described = [meshd] + [package_of(packages[name], root) for name in listed if name != "meshd"]
    moment = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    out = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"meshd-{version}",
        "creationInfo": {"created": datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: meshd-docker-sbom.py"]},
        "packages": described,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations],
    }
    out["documentNamespace"] = f"https://spdx.org/spdxdocs/meshd-{version}-{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(out, sort_keys=True))}"
    return out


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--version", default="0")
    options.add_argument("--root", default="", help="folder of another Debian; else this machine")
    options.add_argument("--output", help="else stdout")
    given = options.parse_args()
    text = json.dumps(document(given.version, given.root), indent=1) + "\n"
    if given.output:
        pathlib.Path(given.output).write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
