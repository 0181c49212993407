"""What cmake/build_source.cmake writes of a commit: build_source_test.py CMAKE."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def git(folder, *words):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(("git", *identity, "-C", folder, *words), check=True, capture_output=True, text=True).stdout.strip()


def written(source, out):
    """The commit in the file that is written, which has to be the one of the template but for that."""
    subprocess.run((sys.argv[1], f"-DSOURCE={source}", "-DVERSION=1.2.3", f"-DOUTPUT={out}",
                    f"-DTEMPLATE={ROOT}/api/app/serving/build.cpp.in", "-P", ROOT / "cmake/build_source.cmake"), check=True)
    text = out.read_text()
    commit = re.search(r'commit_of_build\(\) \{ return "(.*)"; \}', text)[1]
    template = (ROOT / "api/app/serving/build.cpp.in").read_text()
    assert text == template.replace("@VERSION@", "1.2.3").replace("@commit@", commit), text
    return commit


def main():
    with tempfile.TemporaryDirectory() as folder:
        source, out = pathlib.Path(folder) / "source", pathlib.Path(folder) / "build.cpp"
        source.mkdir()
        assert written(source, out) == "", "no repository"
        if not shutil.which("git"):
            print("git is not installed: commits were not tried")
            return
        git(folder, "init", "--quiet")
        git(folder, "commit", "--quiet", "--allow-empty", "--message", "somebody's repository around the sources")
        assert written(source, out) == "", "another's repository"
        git(source, "init", "--quiet")
        assert written(source, out) == "", "no commit yet"
        (source / "file").write_text("a")
        git(source, "add", "file")
        git(source, "commit", "--quiet", "--message", "first")
        commit = git(source, "rev-parse", "HEAD")[:12]
        assert written(source, out) == commit
        before = out.stat().st_mtime_ns
        assert written(source, out) == commit and out.stat().st_mtime_ns == before, "what is the same is not written again"
        (source / "new").write_text("not tracked")
        assert written(source, out) == commit
        (source / "file").write_text("b")
        assert written(source, out) == commit + "-dirty"
        git(source, "worktree", "add", "--quiet", "--detach", "../worktree")
        assert written(source.parent / "worktree", out) == commit, "its .git is a file"


if __name__ == "__main__":
    main()
