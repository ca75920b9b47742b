"""check_history.py SCRIPTS FOLDER: holds the checker of scripts/faults against runs
that keep their promises and runs that break one each."""
import hashlib
import pathlib
import shutil
import sys
import types

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from faultfixture import FILES, STEPS, digests  # noqa: E402
from faulthistory import Life  # noqa: E402
from faultprocess import Deviation, End  # noqa: E402

FOLDER = pathlib.Path(sys.argv[2])


def line(step, loss=0.5):
    return {"step": step, "loss": loss / step, "time_s": 0.1}


def save(folder, step):
    path = folder / f"step-{step:08}"
    path.mkdir(parents=True)
    for name in FILES:
        (path / name).write_text(f"{name} of {step}")
    return path


def new_life():
    """A run that saved the steps 2 and 4 and told of step 5."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    layout = types.SimpleNamespace(
        curve={step: {"loss": 0.5 / step} for step in range(1, STEPS + 1)},
        checkpoints={step: digests(save(FOLDER / "unbroken", step)) for step in (2, 4, STEPS)},
        weights=hashlib.blake2b(b"weights").hexdigest())
    life = Life(layout, FOLDER / "life")
    save(life.checkpoints, 2), save(life.checkpoints, 4)
    life.saved = {2, 4}
    return life


def at(life, step):
    return life.checkpoints / f"step-{step:08}"


def error(text):
    return End(1, [], f"acc-run: error: rank 1: no\n{text}\n")


LAST = "acc-run: error: x; the last checkpoint is 'runs/step-00000004'"


def weights(life, name, text):
    (life.weights.parent / name).write_text(text)
    return life


def complete(life):
    life.saved.add(STEPS)
    return life


# What is checked, of a life, and the deviation that it must find (None: none).
CASES = [
    (lambda life: life.check_lines(End(0, [line(5), line(6)], ""), 4), None),
    (lambda life: life.check_lines(End(0, [line(5), line(6, 0.5000001)], ""), 4), "of step 6"),
    (lambda life: life.check_lines(End(0, [line(5), line(5)], ""), 4), "expected step 6"),
    (lambda life: life.check_lines(End(0, [line(6)], ""), 4), "expected step 5"),
    (lambda life: life.check_folder(False), None),
    (lambda life: (shutil.rmtree(at(life, 2)), life.check_folder(False)), "expected the checkpoints"),
    (lambda life: ((at(life, 2) / FILES[1]).write_text("?"), life.check_folder(False)), "is not the"),
    (lambda life: ((at(life, 2) / FILES[0]).unlink(), life.check_folder(False)), "is not the"),
    (lambda life: ((at(life, 2) / "more").write_text(""), life.check_folder(False)), "is not the"),
    (lambda life: ((life.checkpoints / ".lock").touch(), life.check_folder(True)), None),
    (lambda life: ((life.checkpoints / ".lock").touch(), life.check_folder(False)), "nothing beside"),
    (lambda life: ([(life.checkpoints / f".tmp-step-{i}").mkdir() for i in range(3)],
                   life.check_folder(True)), "nothing beside"),
    (lambda life: life.check_saves(End(1, [line(1), line(5)], ""), 2, 9), None),
    (lambda life: life.check_saves(End(1, [line(1), line(7)], ""), 2, 9), None),
    (lambda life: life.check_saves(End(1, [line(1), line(8)], ""), 2, 9), "of the steps [6]"),
    (lambda life: life.check_saves(End(1, [line(1), {**line(7), "checkpoint": 6}], ""), 2, 9),
     "of the steps [6]"),
    (lambda life: life.check_saves(End(0, [line(1), line(5)], ""), 2, 5), "of the steps [5]"),
    (lambda life: life.check_announced(error(LAST), False), None),
    (lambda life: life.check_announced(error(LAST.replace("4", "2")), False), "to name"),
    (lambda life: life.check_announced(error("; no checkpoint was saved"), False), "to name"),
    (lambda life: life.check_announced(error("nothing"), False), "to name"),
    (lambda life: life.check_announced(error("nothing"), True), None),
    (lambda life: weights(life, life.weights.name, "weights").check_weights(End(1, [], ""), False), None),
    (lambda life: weights(life, life.weights.name, "weight").check_weights(End(1, [], ""), False),
     "the weights of the unbroken"),
    (lambda life: weights(life, "tmp", "").check_weights(End(1, [], ""), False), "beside the weights"),
    (lambda life: complete(life).check_weights(End(0, [], ""), False), "found none"),
]

for number, (case, expected) in enumerate(CASES):
    try:
        case(new_life())
        found = None
    except Deviation as problem:
        found = str(problem)
    if (found is None) != (expected is None) or (expected and expected not in found):
        sys.exit(f"case {number}: expected {expected!r}, found {found!r}")
print(f"{len(CASES)} cases are as expected")
