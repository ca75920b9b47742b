"""broken_output.py HOW COMMAND...: starts a run of JSON lines and treats its
output badly. head: reads one line and closes the pipe; stderr: has closed that
of the errors; slow: reads one line, waits until the pipe is full, and sends TERM;
late: reads one line, waits until the ranks have ended and the parent is stuck with
lines that nobody takes, sends TERM, and reads on; never: likewise, sends TERM three
times, and does not. Says how the run ended."""
import os
import signal
import subprocess
import sys
import threading
import time

how = sys.argv[1]
errors, errors_end = os.pipe()
if how == "stderr":
    os.close(errors)
process = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE,
                           stderr=errors_end, preexec_fn=lambda: signal.signal(
                               signal.SIGTERM, signal.SIG_DFL))
os.close(errors_end)
threading.Timer(60, process.kill).start()
process.stdout.readline()
if how == "head":
    process.stdout.close()
if how == "slow":
    time.sleep(0.5)  # the million steps take longer
    process.send_signal(signal.SIGTERM)
if how in ("late", "never"):
    children = f"/proc/{process.pid}/task/{process.pid}/children"
    while open(children).read():
        time.sleep(0.05)
    for _ in range(1 if how == "late" else 3):
        time.sleep(0.7)  # no burst, which counts once
        process.send_signal(signal.SIGTERM)
if how == "late":
    print("and", len(process.stdout.readlines()), "lines")
if how == "stderr":
    process.stdout.read()
else:
    with open(errors) as stream:
        print(stream.read(), end="")
print("exit code", process.wait(), flush=True)
os._exit(0)
