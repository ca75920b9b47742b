"""interrupt.py SIGNALS COMMAND...: starts a run of JSON lines in a group of its
own, as a terminal does, and when it has told of a step sends it the SIGNALS,
joined by commas: INT, TERM, HUP and the like go to the whole group, those joined by + in
one burst, and the next ones when the run has answered and a burst is over; STOP
stops a rank, whose step then never ends; SUSPEND stops all for longer than a
hang may last, and lets the parent go on first. Says how the run ended."""
import os
import signal
import subprocess
import sys
import threading
import time


def heed():
    """The tests may run where signals are ignored, as in the background."""
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM,
                signal.SIGXCPU):
        signal.signal(one, signal.SIG_DFL)


process = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, start_new_session=True,
                           text=True, preexec_fn=heed)
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
    if name == "SUSPEND":
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(3)
        os.kill(process.pid, signal.SIGCONT)
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGCONT)
        continue
    for one in name.split("+"):
        os.killpg(process.pid, getattr(signal, "SIG" + one))
    print(process.stderr.readline(), end="", flush=True)
    time.sleep(1)
print(process.stderr.read(), end="")
print("exit code", process.wait(), flush=True)
os._exit(0)
