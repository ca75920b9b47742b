"""interrupt.py SIGNALS COMMAND...: starts a run of JSON lines in a group of its
own, as a terminal does, and when it has told of a step sends it the SIGNALS,
joined by commas: INT and TERM go to the whole group, the next one when the run
has answered; STOP stops a rank, whose step then never ends. Says how the run
ended."""
import os
import signal
import subprocess
import sys
import threading

process = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, start_new_session=True,
                           text=True)
# Nothing may ever wait here for longer than the run of a test should take.
threading.Timer(60, process.kill).start()
process.stdout.readline()
# A full pipe would hold the run up.
threading.Thread(target=process.stdout.read, daemon=True).start()
for name in sys.argv[1].split(","):
    if name == "STOP":
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as ranks:
            os.kill(int(ranks.read().split()[-1]), signal.SIGSTOP)
        continue
    os.killpg(process.pid, getattr(signal, "SIG" + name))
    print(process.stderr.readline(), end="")
print(process.stderr.read(), end="")
print("exit code", process.wait(), flush=True)
os._exit(0)
