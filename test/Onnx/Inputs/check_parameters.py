"""Compares acc-opt's report of parameters with the record that was made from the
PyTorch modules themselves.

    check_parameters.py FOLDER [acc-opt option...]

FOLDER holds model.onnx and parameters.json.
"""
import json
import subprocess
import sys

folder = sys.argv[1]
with open(f"{folder}/parameters.json") as file:
    record = json.load(file)
printed = subprocess.run(
    ["acc-opt", f"{folder}/model.onnx", "--report=parameters", "--json"] + sys.argv[2:],
    check=True, stdout=subprocess.PIPE).stdout
report = json.loads(printed)

wrong = []
for entry in report:
    if list(entry) != ["name", "aliases", "shape", "initializers", "trained", "why"]:
        wrong.append(f"unexpected keys: {list(entry)}")
found = {entry["name"]: entry for entry in report}
names = record["names of each parameter"]
for name, initializers in record["parameters"].items():
    entry = found.pop(name, None)
    if entry is None:
        wrong.append(f"{name}: missing")
        continue
    if entry["initializers"] != initializers:
        wrong.append(f"{name}: expected {initializers}, found {entry['initializers']}")
    if [name] + entry["aliases"] != names.get(name, [name]):
        wrong.append(f"{name}: expected names {names.get(name, [name])}, found {entry['aliases']}")
wrong += [f"{name}: not a parameter" for name in found]
print("\n".join(wrong) if wrong else f"{len(report)} parameters as recorded")
sys.exit(1 if wrong else 0)
