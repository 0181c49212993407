"""The Compose files, the Kubernetes manifests and the Dockerfile, read as YAML and text and held to each other: manifests_test.py BINARY."""
import re
import shlex
import subprocess
import unittest

import yaml

from packaging import BINARY, DOCKER, ROOT, packages_for, project_version, variables

DOCKERFILE = (DOCKER / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
OBJECTS = {one["kind"]: one for one in yaml.safe_load_all((DOCKER / "kubernetes/meshd.yaml").read_text())}
HOSTS = yaml.safe_load((DOCKER / "compose.hosts.yaml").read_text())
HOSTS_OBJECTS = {one["kind"]: one for one in yaml.safe_load_all((DOCKER / "kubernetes/hosts.yaml").read_text())}
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


def settings_of(name):
    """{setting: value} of a configuration in docker/hosts; `name = value` or `name value` lines."""
    lines = (line.strip() for line in (DOCKER / "hosts" / name).read_text().splitlines())
    return dict(re.split(r"\s*=\s*|\s+", line, maxsplit=1) for line in lines if line and not line.startswith("#"))


class SeveralHosts(unittest.TestCase):
    """The image with MPI, and the two files that start ranks with it."""

    def setUp(self):
        self.job = HOSTS_OBJECTS["MPIJob"]
        replicas = self.job["spec"]["mpiReplicaSpecs"]
        self.launcher, self.worker = (replicas[name]["template"]["spec"] for name in ("Launcher", "Worker"))
        self.ranks = replicas["Launcher"]["replicas"] + replicas["Worker"]["replicas"]
        self.key_folder = str(re.search(r"install -d -o meshd .*?(\S+/\.ssh)", DOCKERFILE).group(1))
        self.port = int(settings_of("sshd_config")["Port"])

    def test_commands_are_of_options_that_the_server_has(self):
        known = set(re.findall(r"--[a-z][a-z-]+", subprocess.run([BINARY, "serve", "--help"], check=True, capture_output=True, text=True).stdout))
        script = next(line for line in self.launcher["containers"][0]["args"][0].replace("\\\n", " ").splitlines() if "meshd serve" in line)
        for command, ranks in ((HOSTS["services"]["near"]["command"], 2), (script, self.ranks)):
            words = shlex.split(command.removesuffix("&"))
            options = words[words.index("serve") + 1:]
            self.assertLessEqual({word for word in options if word.startswith("--")}, known)
            self.assertEqual(int(options[options.index("--devices") + 1]) % ranks, 0, "devices divide by ranks")
            self.assertEqual(options[options.index("--data") + 1], re.search(r"MESHD_DATA=(\S+)", DOCKERFILE).group(1))

    def test_keys_and_port_are_where_ssh_looks(self):
        server, client = settings_of("sshd_config"), settings_of("ssh_config")
        self.assertEqual({server["HostKey"], client["IdentityFile"]}, {self.key_folder + "/id_rsa"})
        self.assertEqual(server["AuthorizedKeysFile"], self.key_folder + "/authorized_keys")
        self.assertIn(self.key_folder + "/id_rsa.pub", client["KnownHostsCommand"])
        self.assertEqual((client["StrictHostKeyChecking"], client["UserKnownHostsFile"]), ("yes", "none"), "a host without the job's key is refused")
        self.assertEqual(client["Port"], str(self.port))
        self.assertEqual(self.job["spec"]["sshAuthMountPath"], self.key_folder)
        for service in HOSTS["services"].values():
            self.assertIn(self.key_folder, [mount.split(":")[1] for mount in service["volumes"]])
        (port,) = self.worker["containers"][0]["ports"]
        self.assertEqual(port["containerPort"], self.port)
        self.assertIn(f"/{self.port}", HOSTS["services"]["far"]["healthcheck"]["test"][-1])

    def test_files_of_the_image_are_there(self):
        named = set(re.findall(r"/tmp/hosts/(\S+)", DOCKERFILE))
        self.assertEqual(named, {path.name for path in (DOCKER / "hosts").iterdir()})

    def test_a_host_that_is_gone_is_noticed(self):
        first, every, times = (int(settings_of("openmpi-mca-params.conf")["oob_tcp_keepalive_" + name]) for name in ("time", "intvl", "probes"))
        self.assertLess(first + every * times, 12, "as the file says")

    def test_services_of_compose_find_each_other(self):
        services, networks = HOSTS["services"], HOSTS["networks"]
        for name, service in services.items():
            self.assertLessEqual(set(service.get("networks", [])), set(networks), name)
            self.assertLessEqual(set(service.get("depends_on", {})), set(services), name)
            for mount in service["volumes"]:
                self.assertIn(mount.split(":")[0], HOSTS["volumes"])
            self.assertTrue(service["read_only"] and service["cap_drop"] == ["ALL"], name)
        self.assertEqual(set(services["near"]["networks"]) & set(services["far"]["networks"]), {"ranks"})
        self.assertTrue(networks["ranks"]["internal"])
        self.assertIn(networks["ranks"]["ipam"]["config"][0]["subnet"], services["near"]["command"])
        for host in re.search(r"--host (\S+)", services["near"]["command"]).group(1).split(","):
            self.assertEqual(services[host.split(":")[0]]["hostname"], host.split(":")[0])
        self.assertEqual([port for service in services.values() for port in service.get("ports", [])], ["127.0.0.1:8080:8080"])
        self.assertEqual(services["keys"]["build"]["args"], {"MPI": "1"})

    def test_objects_of_kubernetes_find_each_other(self):
        name = self.job["metadata"]["name"]
        mine = {"training.kubeflow.org/job-name": name}  # the operator's labels
        self.assertEqual(HOSTS_OBJECTS["Service"]["spec"]["selector"], {**mine, "training.kubeflow.org/job-role": "launcher"})
        self.assertNotEqual(HOSTS_OBJECTS["Service"]["metadata"]["name"], name, "that name is the operator's Service")
        policy = HOSTS_OBJECTS["NetworkPolicy"]["spec"]
        self.assertEqual(policy["podSelector"]["matchLabels"], mine)
        ranks, clients = policy["ingress"]
        self.assertEqual(ranks["from"], [{"podSelector": {"matchLabels": mine}}])
        (http,) = self.launcher["containers"][0]["ports"]
        self.assertEqual(clients["ports"], [{"port": http["containerPort"], "protocol": "TCP"}])
        self.assertEqual(HOSTS_OBJECTS["Service"]["spec"]["ports"][0]["targetPort"], http["name"])
        for pod in (self.launcher, self.worker):
            volumes = {volume["name"]: volume for volume in pod["volumes"]}
            (container,) = pod["containers"]
            self.assertEqual({mount["name"] for mount in container["volumeMounts"]}, set(volumes))
            self.assertEqual(volumes["data"]["persistentVolumeClaim"]["claimName"], HOSTS_OBJECTS["PersistentVolumeClaim"]["metadata"]["name"])
            self.assertEqual(HOSTS_OBJECTS["PersistentVolumeClaim"]["spec"]["accessModes"], ["ReadWriteMany"])
            self.assertEqual(container["image"], f"meshd-mpi:{project_version()}")
            self.assertEqual((pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsNonRoot"]), (USER, True))
            self.assertEqual(container["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})

    def test_probes_are_those_of_one_server(self):
        one = OBJECTS["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            self.assertEqual(self.launcher["containers"][0][probe], one[probe])


class Names(unittest.TestCase):
    def test_variables_are_those_that_the_server_reads(self):
        known = variables()
        containers = [pod["spec"]["containers"][0] for pod in (OBJECTS["StatefulSet"]["spec"]["template"], HOSTS_OBJECTS["MPIJob"]["spec"]["mpiReplicaSpecs"]["Launcher"]["template"])]
        named = set(COMPOSE["services"]["meshd"]["environment"]) | set(HOSTS["services"]["near"]["environment"])
        named |= {entry["name"] for container in containers for entry in container["env"]}
        named |= set(re.findall(r"\b(MESHD_[A-Z_]+)=", DOCKERFILE))
        self.assertGreater(len(named), 5)
        self.assertEqual(named - known, set())

    def test_base_is_named_once(self):
        names = re.findall(r"(?m)^ARG BASE=(\S+)$", DOCKERFILE)
        self.assertEqual(len(names), 1)
        self.assertRegex(names[0], r"^debian:12-slim(@sha256:[0-9a-f]{64})?$")
        self.assertEqual(set(re.findall(r"(?m)^FROM (\S+)", DOCKERFILE)), {"${BASE}"})

    def test_packages_of_each_stage_are_in_the_list(self):
        for use in ("build", "run", "headers", "service", "mpi", "ranks"):
            self.assertTrue(packages_for(use), use)


unittest.main(argv=["manifests_test.py"])
