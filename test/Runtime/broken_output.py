"""broken_output.py HOW COMMAND...: starts a run of JSON lines and treats its
output badly. head: reads one line and closes the pipe; stderr: has closed that
of the errors; slow: reads one line, waits until the pipe is full, and sends TERM.
Says how the run ended."""
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
    time.sleep(2)
    process.send_signal(signal.SIGTERM)
if how == "stderr":
    process.stdout.read()
else:
    with open(errors) as stream:
        print(stream.read(), end="")
print("exit code", process.wait(), flush=True)
os._exit(0)
