"""kill_rank.py COMMAND...: starts it, kills its last child, reports what is left."""
import os
import subprocess
import sys
import time

process = subprocess.Popen(sys.argv[1:])


def children():
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as stream:
        return [int(child) for child in stream.read().split()]


def shared():
    return set(os.listdir("/dev/shm"))


before = shared()
deadline = time.time() + 20
while len(children()) < 4 and time.time() < deadline:
    time.sleep(0.02)
time.sleep(0.3)
ranks = children()
os.kill(ranks[3], 9)
print("exit code", process.wait(timeout=5), flush=True)
alive = [rank for rank in ranks if os.path.exists(f"/proc/{rank}")]
print("no process is left" if not alive else f"left: {alive}")
outputs = sys.argv[sys.argv.index("--outputs") + 1]
left = sorted(shared() - before) + os.listdir(outputs)
print("no file is left" if not left else f"left: {left}")
