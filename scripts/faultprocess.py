"""A run of acc-run or acc-opt that scripts/faults watches: what it has said so far,
its ranks, its end, and what is left of it. Everything that does not hold is a
Deviation."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

# What a run may take at most, of the machine's time; its own limits are far below.
DEADLINE = 90
# How long the ranks of a parent that is gone may take to go, too.
ORPHANS = 10


class Deviation(Exception):
    """A promise that was not kept."""


class Pace:
    """The machine's time: that in which a thread that sleeps for a second and writes a
    byte to the disk gets on. While the machine or its disk stands still nobody can
    keep a deadline, and a schedule of an hour meets such minutes."""

    def __init__(self, folder):
        self.path, self.seconds = folder / "pace", 0.0
        threading.Thread(target=self.go, daemon=True).start()

    def go(self):
        before = time.monotonic()
        while True:
            time.sleep(0.9)
            with contextlib.suppress(OSError), open(self.path, "wb") as stream:
                stream.write(b".")
                stream.flush()
                os.fsync(stream.fileno())
            now = time.monotonic()
            self.seconds += min(now - before, 1.5)
            before = now


def describe(process):
    """What a process is doing, for whoever has to find out why it does not end."""
    found = []
    for task in pathlib.Path(f"/proc/{process}/task").glob("*"):
        with contextlib.suppress(OSError):
            state = (task / "stat").read_text().rsplit(")", 1)[1].split()[0]
            found.append(f"{task.name} {state} {(task / 'wchan').read_text()}")
    return found


def session_of(process):
    """The session of a living process; None of one that has ended."""
    try:
        with open(f"/proc/{process}/stat") as stream:
            state, _, _, session = stream.read().rsplit(")", 1)[1].split()[:4]
    except OSError:
        return None
    return None if state in "ZX" else int(session)


def living(session):
    """The processes of a session. Each run has one of its own."""
    return [int(name) for name in os.listdir("/proc")
            if name.isdigit() and session_of(name) == session]


def shared_memory():
    """Names in /dev/shm that could be ours: other programs use it, too."""
    folder = "/dev/shm"
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return {name for name in names if "acc-run" in name or "accel" in name}


def heed_signals():
    """The schedule may run in the background, where signals are ignored."""
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(one, signal.SIG_DFL)


class End:
    """How a run ended."""

    def __init__(self, code, lines, error, pace=0.0):
        self.code, self.error, self.pace = code, error, pace
        self.steps = [line for line in lines if "step" in line]
        self.report = next((line for line in lines if "ranks" in line), None)

    def last_error(self):
        """The line that says why it failed."""
        found = [line for line in self.error.splitlines() if ": error: " in line]
        return found[-1] if found else self.error.strip()[-400:]

    def announced(self):
        """The step of the checkpoint that the error names as the last; 0: none was
        saved; None: it does not say."""
        found = re.search(r"; the last checkpoint is '[^']*/step-0*(\d+)'", self.error)
        if found:
            return int(found[1])
        return 0 if "; no checkpoint was saved" in self.error else None


class Run:
    """A run at work. `account` is (uid, gid) of somebody else, or None."""

    pace = None  # of the schedule

    def __init__(self, command, environment, ranks=0, account=None, stdout=subprocess.PIPE):
        self.command, self.expected_ranks = [str(word) for word in command], ranks
        self.shared, self.lines, self.condition = shared_memory(), [], threading.Condition()
        more = {"user": account[0], "group": account[1], "extra_groups": []} if account else {}
        self.start, self.pace_start = time.monotonic(), self.pace.seconds
        self.process = subprocess.Popen(self.command, stdout=stdout, stderr=subprocess.PIPE,
                                        start_new_session=True, env=environment,
                                        preexec_fn=heed_signals, **more)
        self.text, self.found = [], []
        self.readers = [threading.Thread(target=self.read_error, daemon=True)]
        if stdout == subprocess.PIPE:
            self.readers.append(threading.Thread(target=self.read_lines, daemon=True))
        for reader in self.readers:
            reader.start()

    def read_lines(self):
        for line in self.process.stdout:
            with self.condition:
                # A line that kill -9 cut is no line.
                if line.endswith(b"\n"):
                    try:
                        self.lines.append(json.loads(line))
                    except ValueError:
                        self.lines.append({"step": 0, "unread": line.decode(errors="replace")})
                self.condition.notify_all()
        with self.condition:
            self.condition.notify_all()

    def read_error(self):
        for line in self.process.stderr:
            self.text.append(line.decode(errors="replace"))

    def wait_for_lines(self, count):
        """Waits until it has told of so many steps, or has ended."""
        limit = time.monotonic() + DEADLINE
        with self.condition:
            while len(self.lines) < count and self.readers[-1].is_alive() and time.monotonic() < limit:
                self.condition.wait(0.05)

    def is_running(self):
        return self.process.poll() is None

    def ranks(self):
        """The processes of the ranks in their order, once all have started; [] where
        the run ends before that."""
        limit = time.monotonic() + DEADLINE
        while not self.found and time.monotonic() < limit and self.is_running():
            try:
                with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as stream:
                    found = [int(child) for child in stream.read().split()]
            except OSError:
                break
            if len(found) == self.expected_ranks:
                self.found = found
            elif self.lines:
                break  # they are ending
            time.sleep(0.001)
        return self.found

    def signal_rank(self, rank, which):
        """Whether there was a rank to get it."""
        found = self.ranks()
        try:
            if not found or session_of(found[rank]) != self.process.pid:
                return False
            os.kill(found[rank], which)
        except ProcessLookupError:
            return False
        return True

    def signal(self, which, group=False):
        try:
            (os.killpg if group else os.kill)(self.process.pid, which)
        except ProcessLookupError:
            pass

    def finish(self, deadline=DEADLINE):
        """Waits for the end; nothing may be left of it."""
        code = None
        while code is None and self.pace.seconds - self.pace_start < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self.process.wait(1)
        if code is None:
            left = [describe(one) for one in living(self.process.pid)]
            self.signal(signal.SIGKILL, group=True)
            raise Deviation(f"expected an end within {deadline} s, found it alive: {left}; "
                            f"it said: {''.join(self.text)[-600:]}")
        limit = self.pace.seconds + ORPHANS
        left = living(self.process.pid)
        while left and self.pace.seconds < limit:
            time.sleep(0.005)
            left = living(self.process.pid)
        if left:
            self.signal(signal.SIGKILL, group=True)
            raise Deviation(f"expected no process to be left, found {[describe(one) for one in left]}")
        for reader in self.readers:
            reader.join(ORPHANS)
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        if shared_memory() - self.shared:
            raise Deviation(f"expected nothing in /dev/shm, found {shared_memory() - self.shared}")
        return End(code, self.lines, "".join(self.text), self.pace.seconds)
