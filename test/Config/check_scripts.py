"""Holds what acc-opt reads of each script against what Bash passes to FILE.py: stubs in the
launchers' places write down what they get. Arguments, all settings and the ranks have to agree."""

import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys

STUB = """#!{python}
import json, os, sys
words = sys.argv[1:]
name = os.path.basename(sys.argv[0])
if name == "scontrol":
    print("host")
elif name in ("srun", "mpirun"):
    while words and words[0].startswith("-"):
        words = words[2 if words[0] in ("-w", "-np", "-H", "-n") else 1:]
    if words[0] != "hostname":
        os.execvp(words[0], words)
else:
    script = next((i for i, word in enumerate(words) if word.endswith(".py")), None)
    if script is not None:
        with open(os.environ["WRITTEN"], "a") as file:
            file.write(json.dumps(words[script + 1:]) + "\\n")
"""
LAUNCHERS = ("torchrun", "deepspeed", "python", "mpirun", "srun", "scontrol", "module")


def passed_by_bash(script, folder, stubs, outside):
    """The arguments that FILE.py gets; `outside` are variables, and arguments by their number."""
    written = folder / "written.jsonl"
    arguments = [value for name, value in outside if name.isdigit()]
    variables = {name: value for name, value in outside if not name.isdigit()}
    subprocess.run(["/bin/bash", script.name, *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=60,
                   env={"PATH": f"{stubs}:/usr/bin:/bin", "WRITTEN": str(written), **variables})
    launches = [json.loads(line) for line in written.read_text().splitlines()]
    assert len(launches) == 1, f"{script.name}: Bash starts {len(launches)} commands"
    return launches[0]


def read(folder, *flags):
    run = subprocess.run(["acc-opt", *flags, "--print-config", "--json"], cwd=folder,
                         capture_output=True, text=True, timeout=60)
    if run.returncode:
        return run.stderr, None
    parsed = json.loads(run.stdout)
    return ({one["key"]: one["value"] for one in parsed["settings"]},
            [(one["key"], one["value"]) for one in parsed["keys"]
             if one["key"] not in ("nproc_per_node", "nnodes")])


def quote(word):
    """A word of a file of arguments, in which no quote is escaped."""
    mark = "'" if '"' in word else '"'
    assert mark not in word, word
    return f"{mark}{word}{mark}" if not word.startswith("--") else word


def main():
    rows, scripts, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    shutil.rmtree(work, ignore_errors=True)
    stubs = work / "stubs"
    stubs.mkdir(parents=True)
    for name in LAUNCHERS:
        (stubs / name).write_text(STUB.format(python=sys.executable))
        (stubs / name).chmod((stubs / name).stat().st_mode | stat.S_IXUSR)
    failures = count = words = 0
    for row in rows.read_text().splitlines():
        if row.startswith("#"):
            continue
        name, ranks, said = (part.strip() for part in row.split("|"))
        outside = [one.split("=", 1) for one in said.split()]
        folder = work / f"{count}"
        folder.mkdir()
        for file in (name, "env.sh"):
            shutil.copy(scripts / file, folder / file)
        count += 1
        # Before Bash runs: what a script writes must be read of the script itself.
        flags = [flag for one in outside for flag in ("--set-var", "=".join(one))]
        found, keys = read(folder, "--config", name, *flags)
        arguments = passed_by_bash(scripts / name, folder, stubs, outside)
        words += len(arguments)
        lines = [quote(word) for word in arguments]
        (folder / "arguments.txt").write_text("\n".join(lines) + "\n")
        expected, expected_keys = read(folder, "--config", "arguments.txt",
                                       "--set", f"num_processes={ranks}")
        if keys is None or expected_keys is None or found != expected or keys != expected_keys:
            failures += 1
            print(f"{name} {said}: {os.linesep}{found}{os.linesep}{expected}")
            print([pair for pair in zip(keys or [], expected_keys or []) if pair[0] != pair[1]])
    print(f"{count} runs of scripts, {words} words, {failures} failures")


main()
