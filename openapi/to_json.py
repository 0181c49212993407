"""The contract as JSON: to_json.py openapi.yaml OUT."""
import json
import sys

import yaml

with open(sys.argv[1], encoding="utf-8") as source:
    document = yaml.safe_load(source)
with open(sys.argv[2], "w", encoding="utf-8") as target:
    json.dump(document, target, ensure_ascii=False, separators=(",", ":"))
    target.write("\n")
