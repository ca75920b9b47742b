"""What the kinds of scripts/faults have in common: starting the next run of a life,
choosing the moment of a fault, and holding the end of a run against what is
documented (docs/Faults.md)."""
import os
import re
import subprocess
import time

from faultfixture import RANKS, STEPS
from faultprocess import Deviation, Run

# Long after what is expected of a run that nobody stops, on however slow a machine.
PATIENT = 30


class Missed(Exception):
    """The run ended well before the fault came."""


class Scene:
    """One fault in a life. Everything is drawn from `draw`."""

    def __init__(self, fixture, life, draw):
        self.fixture, self.life, self.draw = fixture, life, draw
        self.before = life.newest()
        self.every, self.steps = 0, STEPS

    def command(self, *flags, hang_after=PATIENT, steps=STEPS):
        """The next run of the life. Threads and poison change no bit."""
        life, draw = self.life, self.draw
        self.every, self.steps = draw.choice([1, 1, 2, 3, 5]), steps
        command = life.layout.train_command(steps, life.checkpoints, self.every, *flags,
                                            "--hang-after", hang_after,
                                            "--threads", draw.choice([1, 1, 2]))
        command += ["--poison"] if draw.random() < 0.125 else []
        command += ["--save-weights", life.weights] if steps == STEPS else []
        return command + (["--resume", life.checkpoints] if self.before else [])

    def train(self, *flags, account=None, stdout=subprocess.PIPE, **more):
        return Run(self.command(*flags, **more), self.fixture.environment(), RANKS,
                   account, stdout)

    def few_steps(self):
        """How far a run goes that is not expected to fail."""
        return min(STEPS, self.before + self.draw.randint(3, 12))

    def moment(self, run, while_loading=0.15):
        """Waits for the moment of the fault, and says which it was."""
        if self.draw.random() < while_loading:
            delay = self.draw.uniform(0, 0.08)
            time.sleep(delay)
            return f"{1000 * delay:.0f} ms after the start"
        lines, delay = 1 + int(self.draw.expovariate(0.25)), self.draw.uniform(0, 0.02)
        run.wait_for_lines(lines)
        time.sleep(delay)
        return f"step {self.before + lines} + {1000 * delay:.0f} ms"

    def check(self, end, may_leave=False, may_be_silent=False):
        """What holds of every run."""
        last = self.steps
        self.life.check_lines(end, self.before)
        self.life.check_folder(may_leave)
        self.life.check_saves(end, self.every, last)
        self.life.check_announced(end, may_be_silent)
        self.life.check_weights(end, may_leave)

    def expect_well(self, end):
        self.check(end)
        if end.code != 0 or self.life.newest() != self.steps:
            raise Deviation(f"expected it to end well after step {self.steps}, found {end.code} "
                            f"and step {self.life.newest()}: {end.error[-600:]}")
        return f"goes on to step {self.steps}"

    def expect_error(self, end, pattern, code=1, miss=True, **more):
        """It ends with that exit code and an error that says `pattern`. With `miss` it
        may have ended well before the fault."""
        self.check(end, **more)
        if end.code == 0 and miss:
            raise Missed()
        if end.code != code or not re.search(pattern, end.error):
            raise Deviation(f"expected exit status {code} and an error like {pattern!r}, "
                            f"found {end.code}: {end.error[-600:]}")
        return f"exit {code}, newest step {self.life.newest()}"


def plain_account():
    """(uid, gid) of an account that permissions hold for: None, one's own, for whoever is
    not root."""
    return (65534, 65534) if os.geteuid() == 0 else None
