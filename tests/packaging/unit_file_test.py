"""The unit of systemd and the scripts of the package: unit_file_test.py BINARY."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from packaging import BINARY, DOCKER, project_version, run, variables

UNIT = DOCKER / "debian/meshd.service"
EXPOSED_AT_MOST = 3.0  # of 10


def settings(text):
    """[(name, value)], without comments."""
    return [tuple(line.split("=", 1)) for line in text.splitlines() if "=" in line and not line.startswith("#")]


class UnitFile(unittest.TestCase):
    def test_exposure_is_low_although_code_is_generated(self):
        text = run("systemd-analyze", "security", "--offline=true", "--no-pager", UNIT)
        level = float(re.search(r"exposure level for meshd.service: ([0-9.]+)", text).group(1))
        self.assertLess(level, EXPOSED_AT_MOST, text)
        # The server would not start its first loop of machine code.
        self.assertNotIn("MemoryDenyWriteExecute", [name for name, _ in settings(UNIT.read_text())])

    def test_systemd_finds_nothing_to_say_about_it(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "meshd.service"
            copy.write_text(UNIT.read_text().replace("/usr/bin/meshd", BINARY).replace("file:/usr/share/doc/meshd/README.md", "https://example.org"))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True)
            # The other units of this machine are its own matter.
            ours = [line for line in done.stderr.splitlines() if "meshd" in line]
            self.assertEqual(ours, [], done.stderr)

    def test_settings_that_systemd_ignores_are_found_by_the_line_above(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "meshd.service"
            copy.write_text(UNIT.read_text().replace("/usr/bin/meshd", BINARY).replace("PrivateTmp=", "PrivateTemp="))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True)
            self.assertIn("PrivateTemp", done.stderr)

    def test_each_variable_is_one_that_the_server_reads(self):
        unit = UNIT.read_text()
        named = re.findall(r"(?m)^#?(MESHD_[A-Z_]+)=", (DOCKER / "debian/meshd.default").read_text()) + re.findall(r"\bMESHD_[A-Z_]+\b", unit)
        self.assertGreater(len(named), 5)
        self.assertEqual(set(named) - variables(), set())

    def test_example_lines_of_the_conffile_start_a_server(self):
        # Those that name no file of the machine, all at once.
        lines = re.findall(r"(?m)^#(MESHD_[A-Z_]+=.*)$", (DOCKER / "debian/meshd.default").read_text())
        lines = [line for line in lines if "=/" not in line and not line.startswith("MESHD_LISTEN")]
        self.assertTrue(lines)
        from server import Meshd
        with Meshd(BINARY, launcher=["env", *lines]) as server:
            self.assertEqual(server.ask("GET", "/readyz")[0], 200)

    def test_scripts_of_the_package_are_shell_and_executable(self):
        for name in ("postinst", "prerm", "postrm"):
            script = DOCKER / "debian" / name
            self.assertTrue(script.stat().st_mode & 0o111, name)
            run("sh", "-n", script)
            self.assertTrue(script.read_text().startswith("#!/bin/sh\n"))
            self.assertIn("\nset -e\n", script.read_text())
            if shutil.which("shellcheck"):
                run("shellcheck", script)

    def test_version_has_its_section_in_the_changelog(self):
        text = (DOCKER.parent / "CHANGELOG.md").read_text()
        self.assertRegex(text, rf"(?m)^## {re.escape(project_version())}\b")


unittest.main(argv=["unit_file_test.py"])
