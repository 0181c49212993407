#!/usr/bin/env python3
"""The link lines of CMake are the dependency diagram: a source may include its own library's headers and those of the libraries that its
CMakeLists.txt links, links have no cycle, subfolders of one folder use each other one way, and the headers of third parties stay in the folders
that may know them."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCES = {  # what is included -> where it may be
    r"httplib\.h": ["api/http/httplib_bridge", "api/app/local_commands/probe", "api/client/transfer/connection"], r"sqlite3\.h": ["storage/"], r"boost/asio": ["service/device/", "api/server/"],
    r"boost/context": ["service/core/waits/fiber"], r"(cblas|openblas|lapack|dnnl|oneapi)": ["service/kernels/"], r"mpi\.h": ["service/hosts/mpi/"],
    r"spdlog": ["api/app/serving/log", "storage/"], r"CLI/": ["api/app/command_line/"], r"toml\+\+/": ["api/app/command_line/config_file"], r"openssl/(?!evp\.h)": ["api/server/tls_"]}


def links_of(listfile):
    """(name of the library, what it links) as meshd_folder or target_link_libraries say it."""
    text = re.sub(r"#[^\n]*", "", listfile.read_text())
    folder = re.search(r"meshd_folder\((\w+)(.*?)\)", text, re.S)
    if folder:
        linked = re.search(r"\bLINKS\b(.*?)(?:PRIVATE_LINKS|$)", folder.group(2), re.S)
        return folder.group(1), set(linked.group(1).split()) if linked else set()
    library = re.search(r"add_library\(meshd_(\w+)", text)
    if not library:
        return None, set()
    linked = re.search(rf"target_link_libraries\(meshd_{library.group(1)}(.*?)\)", text, re.S)
    return library.group(1), set(re.findall(r"meshd_(\w+)", linked.group(1)))


def cycle_through(links, start):
    """A path from `start` back to it, or nothing."""
    paths = [[start]]
    while paths:
        path = paths.pop()
        for used in links.get(path[-1], ()):
            if used == start:
                return [*path, used]
            if used not in path:
                paths.append([*path, used])
    return None


def main():
    links, room_of_folder = {}, {}
    for top in ("service", "storage", "api"):
        for listfile in sorted((ROOT / top).rglob("CMakeLists.txt")):
            name, linked = links_of(listfile)
            if name:
                links[name] = linked
                room_of_folder[str(listfile.parent.relative_to(ROOT))] = name

    def room(path):
        while path not in room_of_folder and "/" in path:
            path = path.rsplit("/", 1)[0]
        return room_of_folder.get(path)

    def siblings(path, other):
        """(folder, its subfolder with `path`, its subfolder with `other`) where these are two subfolders of one folder."""
        path, other = path.split("/")[:-1], other.split("/")[:-1]
        common = 0
        while common < min(len(path), len(other)) and path[common] == other[common]:
            common += 1
        return "/".join(path[:common]), path[common:common + 1], other[common:common + 1]

    wrong, count, subfolders = [], 0, {}
    for name in links:
        cycle = cycle_through(links, name)
        if cycle:
            wrong.append("links in a cycle: " + " -> ".join(cycle))
    for top in ("service", "storage", "api"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix not in (".h", ".cpp"):
                continue
            name = str(path.relative_to(ROOT))
            user = room(name)
            for number, line in enumerate(path.read_text().splitlines(), 1):
                found = re.match(r'\s*#include\s+(["<])([^">]+)[">]', line)
                if not found:
                    continue
                count += 1
                target = found.group(2)
                if found.group(1) == '"':
                    used = room(target)
                    if not used:
                        wrong.append(f"{name}:{number}: '{target}' is not written from the root")
                    elif used != user and used not in links[user]:
                        wrong.append(f"{name}:{number}: {user} does not link {used} ('{target}')")
                    folder, using, included = siblings(name, target)
                    if used == user and using and included:
                        subfolders.setdefault(folder, {}).setdefault(using[0], set()).add(included[0])
                for pattern, places in FENCES.items():
                    if re.match(pattern, target) and not any(name.startswith(place) for place in places):
                        wrong.append(f"{name}:{number}: <{target}> belongs behind {', '.join(places)}")
    for folder, uses in subfolders.items():
        cycle = next(filter(None, (cycle_through(uses, start) for start in uses)), None)
        if cycle:
            wrong.append(f"subfolders of {folder} in a cycle: " + " -> ".join(cycle))
    print("\n".join(wrong))
    print(f"{count} includes of {len(links)} libraries, {len(wrong)} against the diagram")
    return 1 if wrong or count < 500 or len(links) < 20 else 0


sys.exit(main())
