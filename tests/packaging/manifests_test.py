"""The Compose file, the Kubernetes manifests and the Dockerfile, read as YAML and text and held to each other: manifests_test.py BINARY."""
import re
import unittest

import yaml

from packaging import DOCKER, ROOT, packages_for, project_version, variables

DOCKERFILE = (DOCKER / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
OBJECTS = {one["kind"]: one for one in yaml.safe_load_all((DOCKER / "kubernetes/meshd.yaml").read_text())}
PATHS = yaml.safe_load((ROOT / "openapi/openapi.yaml").read_text())["paths"]
USER = int(re.search(r"useradd .*--uid (\d+)", DOCKERFILE).group(1))


class Compose(unittest.TestCase):
    def test_folders_and_volumes_that_are_mounted_are_there(self):
        for name, service in COMPOSE["services"].items():
            for mount in service.get("volumes", []):
                source = mount.split(":")[0]
                with self.subTest(f"{name}: {mount}"):
                    if source.startswith("."):
                        self.assertTrue((DOCKER / source).exists())
                        self.assertTrue(mount.endswith(":ro"))
                    else:
                        self.assertIn(source, COMPOSE["volumes"])

    def test_ports_are_open_on_loopback_alone(self):
        for service in COMPOSE["services"].values():
            for port in service["ports"]:
                self.assertTrue(port.startswith("127.0.0.1:"), port)

    def test_services_wait_for_services_that_exist_and_are_healthy(self):
        for service in COMPOSE["services"].values():
            depends = service.get("depends_on", [])
            self.assertLessEqual(set(depends), set(COMPOSE["services"]))
            if isinstance(depends, dict):
                for name, how in depends.items():
                    self.assertEqual(how, {"condition": "service_healthy"})
                    self.assertIn("HEALTHCHECK", DOCKERFILE, name)

    def test_prometheus_asks_the_service_and_grafana_asks_prometheus(self):
        jobs = yaml.safe_load((DOCKER / "prometheus/prometheus.yml").read_text())["scrape_configs"]
        (target,) = jobs[0]["static_configs"][0]["targets"]
        self.assertEqual(target, "meshd:8080")
        meshd = COMPOSE["services"]["meshd"]["environment"]
        self.assertIn(target.split(":")[0], meshd["MESHD_ALLOWED_HOST"].split(","))
        (source,) = yaml.safe_load((DOCKER / "grafana/provisioning/datasources/prometheus.yml").read_text())["datasources"]
        self.assertEqual(source["url"], "http://prometheus:9090")
        (provider,) = yaml.safe_load((DOCKER / "grafana/provisioning/dashboards/meshd.yml").read_text())["providers"]
        self.assertIn("./grafana/dashboards:" + provider["options"]["path"] + ":ro", COMPOSE["services"]["grafana"]["volumes"])

    def test_images_of_others_have_a_version(self):
        for name, service in COMPOSE["services"].items():
            if "build" not in service:
                self.assertRegex(service["image"], r":[v0-9][0-9.]+(@sha256:[0-9a-f]{64})?$", name)


class Kubernetes(unittest.TestCase):
    def setUp(self):
        self.set = OBJECTS["StatefulSet"]
        self.pod = self.set["spec"]["template"]
        (self.container,) = self.pod["spec"]["containers"]

    def test_objects_find_each_other(self):
        labels = self.pod["metadata"]["labels"]
        self.assertEqual(self.set["spec"]["selector"]["matchLabels"], labels)
        self.assertEqual(OBJECTS["Service"]["spec"]["selector"], labels)
        self.assertEqual(self.set["spec"]["serviceName"], OBJECTS["Service"]["metadata"]["name"])
        self.assertEqual(self.pod["spec"]["serviceAccountName"], OBJECTS["ServiceAccount"]["metadata"]["name"])
        ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        self.assertIn(OBJECTS["Service"]["spec"]["ports"][0]["targetPort"], ports)
        self.assertEqual(ports["http"], int(re.search(r"EXPOSE (\d+)", DOCKERFILE).group(1)))

    def test_probes_ask_for_paths_of_the_contract(self):
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            asked = self.container[name]["httpGet"]
            self.assertIn(asked["path"], PATHS, name)
            self.assertEqual(PATHS[asked["path"]]["get"]["security"], [], "probes have no token")
            self.assertEqual(asked["port"], "http")
        self.assertEqual(self.container["livenessProbe"]["httpGet"]["path"], "/livez")

    def test_volumes_are_mounted_and_declared(self):
        declared = {volume["name"] for volume in self.pod["spec"]["volumes"]} | {claim["metadata"]["name"] for claim in self.set["spec"]["volumeClaimTemplates"]}
        mounted = {mount["name"]: mount["mountPath"] for mount in self.container["volumeMounts"]}
        self.assertEqual(set(mounted), declared)
        self.assertEqual(mounted["data"], re.search(r"MESHD_DATA=(\S+)", DOCKERFILE).group(1))
        tokens = next(entry["value"] for entry in self.container["env"] if entry["name"] == "MESHD_TOKENS")
        self.assertTrue(tokens.startswith(mounted["tokens"] + "/"))

    def test_it_runs_as_the_image_does_and_may_nothing_else(self):
        security = self.pod["spec"]["securityContext"]
        self.assertEqual((security["runAsUser"], security["runAsGroup"], security["runAsNonRoot"]), (USER, USER, True))
        self.assertEqual(self.container["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})
        self.assertEqual(self.container["image"], f"meshd:{project_version()}")
        self.assertEqual(self.set["spec"]["replicas"], 1, "one server a data folder")


class Names(unittest.TestCase):
    def test_variables_are_those_that_the_server_reads(self):
        known = variables()
        container = OBJECTS["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]
        named = set(COMPOSE["services"]["meshd"]["environment"]) | {entry["name"] for entry in container["env"]}
        named |= set(re.findall(r"\b(MESHD_[A-Z_]+)=", DOCKERFILE))
        self.assertGreater(len(named), 5)
        self.assertEqual(named - known, set())

    def test_base_is_named_once(self):
        names = re.findall(r"(?m)^ARG BASE=(\S+)$", DOCKERFILE)
        self.assertEqual(len(names), 1)
        self.assertRegex(names[0], r"^debian:12-slim(@sha256:[0-9a-f]{64})?$")
        self.assertEqual(set(re.findall(r"(?m)^FROM (\S+)", DOCKERFILE)), {"${BASE}"})

    def test_packages_of_each_stage_are_in_the_list(self):
        for use in ("build", "run", "headers", "service"):
            self.assertTrue(packages_for(use), use)


unittest.main(argv=["manifests_test.py"])
