"""Prometheus' rules and Grafana's dashboard against promtool and the metrics of a running server: monitoring_test.py BINARY."""
import json
import pathlib
import re
import tempfile
import unittest

import yaml

from packaging import BINARY, DOCKER, run

PROMETHEUS = DOCKER / "prometheus"
DASHBOARD = DOCKER / "grafana/dashboards/meshd.json"
DOUBLE = {"program": {"format": "numpy", "text": "def f(x): return x + x"}, "arguments": [[1, 2, 3]]}
METRIC = re.compile(r"\b((?:meshd|process)_[a-z_]+)\b")


def dashboard_panels():
    return json.loads(DASHBOARD.read_text())["panels"]


def dashboard_queries():
    """Each query as Prometheus gets it, by panel."""
    return [(panel["title"], target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*"))
            for panel in dashboard_panels() for target in panel.get("targets", [])]


class Monitoring(unittest.TestCase):
    def test_promtool_takes_the_configuration_and_the_rules(self):
        run("promtool", "check", "config", "prometheus.yml", cwd=PROMETHEUS)
        run("promtool", "check", "rules", "--lint-fatal", "alerts.yml", cwd=PROMETHEUS)

    def test_alerts_fire_on_what_they_are_for(self):
        run("promtool", "test", "rules", "alerts_test.yml", cwd=PROMETHEUS)
        alerts = {rule["alert"] for group in yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"] for rule in group["rules"]}
        tests = yaml.safe_load((PROMETHEUS / "alerts_test.yml").read_text())["tests"]
        fired = {test["alertname"] for each in tests for test in each["alert_rule_test"] if test.get("exp_alerts")}
        self.assertEqual(alerts, fired, "each alert is seen to fire")

    def test_promtool_takes_each_query_of_the_dashboard(self):
        queries = dashboard_queries()
        self.assertGreater(len(queries), 20)
        with tempfile.TemporaryDirectory() as folder:
            rules = pathlib.Path(folder) / "rules.yml"
            rules.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": [
                {"record": f"query_{number}", "expr": query, "labels": {"panel": title}} for number, (title, query) in enumerate(queries)]}]}))
            self.assertIn(f"{len(queries)} rules found", run("promtool", "check", "rules", rules))

    def test_each_metric_is_one_that_the_server_has(self):
        from server import Meshd, ok
        with Meshd(BINARY) as server:
            ok(server.ask("POST", "/v1/run", DOUBLE))
            text = server.ask("GET", "/metrics")[2].decode()
        known = set(re.findall(r"(?m)^([a-z_]+)[{ ]", text)) | set(re.findall(r"(?m)^# TYPE ([a-z_]+)", text))
        alerts = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"]
        for query in [query for _, query in dashboard_queries()] + [rule["expr"] for group in alerts for rule in group["rules"]]:
            self.assertEqual(set(METRIC.findall(query)) - known, set(), query)

    def test_labels_that_queries_select_by_are_there(self):
        from server import Meshd, ok
        with Meshd(BINARY) as server:
            ok(server.ask("POST", "/v1/run", DOUBLE))
            text = server.ask("GET", "/metrics")[2].decode()
        labels = {}
        for name, inside in re.findall(r"(?m)^([a-z_]+)\{(.*)\} ", text):
            labels.setdefault(name, set()).update(re.findall(r'(\w+)="', inside))
        for _, query in dashboard_queries():
            for by, name in re.findall(r"sum by \(([a-z, ]+)\) \((?:rate\()?([a-z_]+)\{", query):
                self.assertLessEqual(set(by.split(", ")), labels.get(name, set(by.split(", "))), query)

    def test_panels_have_places_of_their_own(self):
        taken, ids = {}, set()
        for panel in dashboard_panels():
            self.assertNotIn(panel["id"], ids)
            ids.add(panel["id"])
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24)
            for cell in ((x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])):
                self.assertNotIn(cell, taken, f"{panel['title']} lies over {taken.get(cell)}")
                taken[cell] = panel["title"]


unittest.main(argv=["monitoring_test.py"])
