"""Holds what acc-opt makes of each file of valid/ against the table valid.txt,
and that no key of a file goes unmentioned."""

import json
import pathlib
import re
import shlex
import subprocess
import sys

here = pathlib.Path(__file__).parent


def keys_of(text):
    """How many keys a file has: of JSON exactly, of our YAML by its lines, of arguments
    by their dashes."""
    if re.search(r"^--", text, re.M):
        return len(re.findall(r"(?:^|\s)--[a-z]", re.sub(r"#.*", "", text)))
    if text.lstrip().startswith("{"):
        def count(value):
            if not isinstance(value, dict):
                return 0
            return len(value) + sum(count(inner) for inner in value.values())
        # What stands below a section that is not looked into.
        data = json.loads(text)
        opaque = ("tensorboard", "wandb", "csv_monitor", "comms_logger",
                  "flops_profiler", "autotuning", "amp", "curriculum_learning",
                  "elasticity", "compression_training")
        inside = sum(count(data[key]) for key in opaque if key in data)
        writer = count(data.get("checkpoint", {}).get("parallel_write", {}))
        return count(data) - inside - writer
    text = re.sub(r"#.*", "", text)
    if "ipex_config" in text:
        text = text.replace("  ipex: true\n", "")
    text = re.sub(r"'\{.*\}'", "", text)  # a JSON's text is another file
    return len(re.findall(r"[A-Za-z_0-9]+:(?=\s)", text))


failures = 0
rows = 0
for line in (here / "valid.txt").read_text().splitlines():
    if line.startswith("#"):
        continue
    name, expected, flags, source = (part.strip() for part in line.split(" | ", 3))
    rows += 1
    path = here / "valid" / name
    run = subprocess.run(["acc-opt", "--config", str(path), "--print-config",
                          "--json", *shlex.split(flags)],
                         capture_output=True, text=True)
    if run.returncode:
        print(f"{name}: refused: {run.stderr.strip()}")
        failures += 1
        continue
    found = json.loads(run.stdout)
    settings = {one["key"]: one["value"] for one in found["settings"]}
    for pair in expected.split():
        key, value = pair.split("=", 1)
        if settings.get(key) != value:
            print(f"{name}: expected {pair}, found {settings.get(key)}")
            failures += 1
    for one in found["settings"]:
        if one["origin"] == "file" and not one.get("line"):
            print(f"{name}: '{one['key']}' has no line")
            failures += 1
    read = sum(pathlib.Path(one.get("file", "")) == path for one in found["keys"])
    if read != keys_of(path.read_text()):
        print(f"{name}: expected {keys_of(path.read_text())} keys to be read, "
              f"found {read}")
        failures += 1

listed = {line.split(" | ")[0] for line in
          (here / "valid.txt").read_text().splitlines() if line[0] != "#"}
for path in sorted((here / "valid").iterdir()):
    if path.name not in listed:
        print(f"{path.name}: not in valid.txt")
        failures += 1
print(f"{rows} files, {failures} failures")
sys.exit(failures > 0)
