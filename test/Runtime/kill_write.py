"""kill_write.py FOLDER ACC-RUN...: kills a run while a thread of its ranks writes a checkpoint
and steps go on: the run itself, or a rank, in turn. Each time the checkpoints that are there
are whole and go on; the one that was being written is there whole or not at all."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

folder, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
FILES = ["checkpoint.json", "model.safetensors", "optimizer.safetensors"]
CHECKPOINTS = folder / "c"


def saved():
    found = {}
    for path in CHECKPOINTS.glob("step-*"):
        assert sorted(file.name for file in path.iterdir()) == FILES, path
        found[int(path.name[5:])] = path
    return found


def writing():
    """The step whose checkpoint is being written."""
    try:
        return next((int(name[10:]) for name in os.listdir(CHECKPOINTS)
                     if name.startswith(".tmp-step-")), None)
    except FileNotFoundError:
        return None


halves = 0
for turn in range(6):
    newest = max(saved(), default=0) if CHECKPOINTS.exists() else 0
    resume = ["--resume", str(CHECKPOINTS)] if newest else []
    with open(folder / "lines", "w") as lines:
        process = subprocess.Popen(
            [*command, *resume, "--steps", "1000000000", "--checkpoint", str(CHECKPOINTS),
             "--save-every", "1000", "--json", "--log-every", "1000"], stdout=lines,
            stderr=subprocess.PIPE)
    begin = time.monotonic()
    while (step := writing()) is None or step < newest + 2000:
        assert process.poll() is None and time.monotonic() - begin < 60, process.stderr.read()
    ranks = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(ranks[0]) if turn % 2 else process.pid, signal.SIGKILL)
    process.wait(timeout=30)
    error = process.stderr.read().decode()
    while any(pathlib.Path("/proc", rank, "exe").exists() for rank in ranks):
        time.sleep(0.01)
    found = saved()
    halves += max(found) < step
    told = [json.loads(line) for line in (folder / "lines").read_text().splitlines()
            if line.endswith("}")]
    told = max((line.get("checkpoint", 0) for line in told), default=0)
    assert {newest, told} - {0} <= set(found), (newest, told, sorted(found))
    assert set(range(1000, max(found) + 1, 1000)) == set(found), sorted(found)
    if turn % 2:
        assert f"the last checkpoint is '{found[max(found)]}'" in error, error
print("of 6 kills", halves, "left a checkpoint that is not there")
assert halves, "no write was ever hit"
