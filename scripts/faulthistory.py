"""What must be true of a training however it was disturbed: scripts/faults holds the
lines, the folder of checkpoints and the weights of every run against the unbroken
run's."""
import shutil

from faultfixture import FILES, STEPS, digest, digests, numbers
from faultprocess import Deviation


class Life:
    """One training: its folder, and the checkpoints that were whole in it."""

    def __init__(self, layout, folder):
        self.layout, self.folder = layout, folder
        self.checkpoints = folder / "checkpoints"
        self.weights = folder / "weights" / "final.safetensors"
        self.begin()

    def begin(self):
        """Nothing is trained yet."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.weights.parent.mkdir(parents=True)
        self.saved, self.is_complete = set(), False

    def newest(self):
        return max(self.saved, default=0)

    def path(self, step):
        return self.checkpoints / f"step-{step:08}"

    def check_lines(self, end, before):
        """The steps follow the newest checkpoint one by one, and each is the unbroken
        run's to the bit."""
        for number, line in enumerate(end.steps):
            step = before + 1 + number
            if line["step"] != step:
                raise Deviation(f"expected step {step}, found {line}: the newest checkpoint "
                                f"was that of step {before}")
            if numbers(line) != self.layout.curve[step]:
                raise Deviation(f"expected {self.layout.curve[step]} of step {step}, found {line}")

    def check_folder(self, may_leave):
        """Every checkpoint is the unbroken run's byte by byte, and none of those that
        were there is gone. Beside them there is nothing; where a run could not clean
        up, or was refused before it could (`may_leave`), a lock and one temporary."""
        found, left = set(), []
        for path in sorted(self.checkpoints.iterdir()) if self.checkpoints.exists() else []:
            if not path.name.startswith("step-"):
                left.append(path.name)
                continue
            step = int(path.name[5:])
            if digests(path) != self.layout.checkpoints[step]:
                raise Deviation(f"{path} is not the unbroken run's: expected {FILES}, found "
                                f"{sorted(p.name for p in path.iterdir())}")
            found.add(step)
        if self.saved - found:
            raise Deviation(f"expected the checkpoints {sorted(self.saved)}, found {sorted(found)}")
        if (left and not may_leave) or len(left) > 2:
            raise Deviation(f"expected nothing beside checkpoints, found {left}")
        self.saved = found

    def check_saves(self, end, every, last):
        """What is due is on the disk before the next that is due is begun, and what a line
        says to be saved."""
        told = max((line["step"] for line in end.steps), default=0)
        newest = max((line.get("checkpoint", 0) for line in end.steps), default=0)
        due = {step for step in range(every, told + 1, every)
               if step <= max(newest, told // every * every - 1)}
        due |= {last} if end.code == 0 else set()
        before = end.steps[0]["step"] if end.steps else 0
        missing = {step for step in due if step >= before} - self.saved
        if missing:
            raise Deviation(f"expected checkpoints of the steps {sorted(missing)}, of which the "
                            f"lines up to step {told} tell, found {sorted(self.saved)}")

    def check_announced(self, end, may_be_silent):
        """An error names the newest checkpoint that there is."""
        said = end.announced()
        if end.code == 0 or (said is None and may_be_silent):
            return
        if said != self.newest():
            raise Deviation(f"expected the error to name the checkpoint of step {self.newest()}, "
                            f"found {end.last_error()!r}")

    def check_weights(self, end, may_leave):
        """Weights are whole or not at all."""
        names = {path.name for path in self.weights.parent.iterdir()}
        if names - {self.weights.name} and not may_leave:
            raise Deviation(f"expected nothing beside the weights, found {names}")
        if self.weights.exists() and digest(self.weights) != self.layout.weights:
            raise Deviation("expected the weights of the unbroken run, found others")
        self.is_complete = end.code == 0 and self.newest() == STEPS
        if self.is_complete and not self.weights.exists():
            raise Deviation("expected weights of a run that ended well, found none")
        for path in self.weights.parent.iterdir():
            path.unlink()
