"""ignored.py COMMAND...: starts a run of JSON lines that ignores INT and HUP, as
in the background and under nohup, sends it both, says whether it told of steps
afterwards, and ends it by TERM."""
import os
import signal
import subprocess
import sys
import threading


def ignore():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True,
                           preexec_fn=ignore)
threading.Timer(60, process.kill).start()
process.stdout.readline()
for name in ["INT", "HUP"]:
    process.send_signal(getattr(signal, "SIG" + name))
    # More lines than were on their way.
    lines = [process.stdout.readline() for _ in range(5000)]
    print("went on after" if lines[-1] else "ended by", name, flush=True)
process.terminate()
threading.Thread(target=process.stdout.read, daemon=True).start()
print(process.stderr.read(), end="")
print("exit code", process.wait(), flush=True)
os._exit(0)
