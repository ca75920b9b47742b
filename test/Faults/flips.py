"""flips.py FOLDER CLASS[,CLASS...] COUNT SEED: flips COUNT times one bit of what a
training believes, and trains. Each time the run must end with exit code 1 and an
error that names the file, before its first step, or give the bits that it gives
without the flip (of a byte that nobody reads). CLASSes:

  executable  the .accx: its header, each section, what lies between, by acc-run
  text        the same file where acc-opt goes on from a phase in it
  weights     the model's file, whose weights the executable names
  section     weights that are in a section of the executable, and a hand-made one
  checkpoint  the manifest and both files of states, resumed from
  data        the tokens of a run that is resumed, as .npy and as raw numbers

Files that are read by nobody's hash are no class: the inputs of a run that starts
(another bit is another sample), and models before they are compiled. What is kept
in the cache is flipped by test/Target/cache_entry.py."""
import argparse
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys

TEST = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 60  # after which a run of milliseconds hangs


def run(*command):
    process = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                             timeout=SECONDS, errors="replace")
    return process.returncode, process.stdout, process.stderr


def must(*command):
    code, out, errors = run(*command)
    if code:
        sys.exit(f"{command}: {errors}")
    return out


def parts_of(path):
    """Lists of ranges of an executable, by what they are."""
    data = path.read_bytes()
    length, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    start = (length + 16 + 4095) // 4096 * 4096
    parts = {"length": [(0, 8)], "header": [(8, 8 + length)], "hash": [(8 + length, 16 + length)]}
    between, at = [], 16 + length
    for key, value in header.items():
        if key.startswith("section:"):
            begin, end = (start + offset for offset in value["data_offsets"])
            kind = "text" if key.startswith("section:ir:") else key
            parts.setdefault(kind, []).append((begin, end))
            between.append((at, begin))
            at = end
    between.append((at, len(data)))
    return {**parts, "padding": [(begin, end) for begin, end in between if begin < end]}


class Training:
    """A command that trains, and what it says and saves."""

    def __init__(self, folder, *command):
        self.saved = folder / "saved.safetensors"
        self.command = ["acc-run", *command, "--json", "--save-weights", self.saved]

    def __call__(self):
        self.saved.unlink(missing_ok=True)
        code, out, errors = run(*self.command)
        lines = re.findall(r'"(?:step|loss|grad_norm|lr)": [^,}]*', out)
        return code, lines, self.saved.read_bytes() if self.saved.exists() else b"", errors


class Compilation:
    """A command that prints a program."""

    def __init__(self, *command):
        self.command = command

    def __call__(self):
        code, out, errors = run(*self.command)
        return code, out.splitlines(), b"", errors


def compile_mlp(folder):
    model = folder / "model.onnx"
    shutil.copy(TEST / "Fixtures" / "mlp" / "model.onnx", model)
    must(sys.executable, TEST / "Integration" / "make_regression.py", folder)
    must("acc-opt", model, "--dim", "batch=8", "--train", "--optimizer", "adamw", "--loss",
         "cross_entropy:y,labels", "--mesh", "dp=2", "--set", "zero_stage=3",
         "-o", folder / "m.accx")
    return folder / "m.accx", model


# Each class yields the files with their parts, and the command that reads them.

def executable(folder):
    accx, _ = compile_mlp(folder)
    yield {accx: parts_of(accx)}, Training(folder, accx, "--inputs", folder, "--steps", "2")


def text(folder):
    accx, _ = compile_mlp(folder)
    parts = parts_of(accx)
    phases = "nn", "train", "dist", "decided", "local", "plan"  # as they lie there
    for phase, place in zip(phases, parts["text"]):
        yield ({accx: {"header": parts["header"], phase: [place]}},
               Compilation("acc-opt", accx, f"--compile-to={phase}"))


def weights(folder):
    accx, model = compile_mlp(folder)
    yield {model: None}, Training(folder, accx, "--inputs", folder, "--steps", "2")


def section(folder):
    must("accel-make-executable", folder, "train", "2", "2")
    accx = folder / "m.accx"
    yield {accx: parts_of(accx)}, Training(folder, accx, "--inputs", folder, "--steps", "2")


def checkpoint(folder):
    accx, _ = compile_mlp(folder)
    flags = accx, "--inputs", folder
    must("acc-run", *flags, "--steps", "2", "--checkpoint", folder / "c")
    files = {path: None for path in sorted((folder / "c").glob("*/*"))}
    yield files, Training(folder, *flags, "--steps", "4", "--resume", folder / "c")


def data(folder):
    must("accel-make-executable", folder, "tokens", "2", "2")
    values = [n * 37 % 997 for n in range(10 * 8 + 3)]  # what is left over is not read
    raw, npy = folder / "tokens.bin", folder / "tokens.npy"
    raw.write_bytes(struct.pack(f"<{len(values)}H", *values))
    must(sys.executable, TEST / "Scripts" / "write_npy.py", npy, "<i8", len(values), *values)
    for path in (raw, npy):
        kept = folder / f"{path.suffix[1:]}-checkpoints"
        # The hand-made program has a float input, which no data feed.
        flags = folder / "m.accx", "--inputs", folder, "--data", path
        must("acc-run", *flags, "--steps", "2", "--checkpoint", kept)
        yield {path: None}, Training(folder, *flags, "--steps", "4", "--resume", kept)


CLASSES = {f.__name__: f for f in (executable, text, weights, section, checkpoint, data)}


def flip(files, command, count, draw):
    """Returns how many were refused, how many the same, and what is wrong."""
    expected = command()
    if expected[0] or not expected[1]:
        sys.exit(f"the run itself fails: {expected}")
    refused, same, wrong = 0, 0, []
    for _ in range(count):
        path = draw.choice(list(files))
        whole = path.read_bytes()
        name, ranges = draw.choice(list((files[path] or {"": [(0, len(whole))]}).items()))
        begin, end = draw.choice(ranges)
        bit = draw.randrange(begin * 8, end * 8)
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            path.write_bytes(damaged)
            code, lines, saved, errors = command()
        except subprocess.TimeoutExpired:
            code, lines, saved, errors = -1, [], b"", "it hangs"
        finally:
            path.write_bytes(whole)
        said = errors.strip()
        if (code, lines, saved) == expected[:3]:
            same += 1
        elif (code == 1 and not lines and not saved and str(path) in said and "error: " in said
              and not re.search("ended by signal|Sanitizer|runtime error", said)):
            refused += 1
        else:
            wrong.append(f"bit {bit % 8} of byte {bit // 8} of {path.name} ({name}): exit {code}, "
                         f"{lines[:4]}: {said[-300:]}")
    return refused, same, wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("classes")
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    arguments = parser.parse_args()
    failed = False
    for name in CLASSES if arguments.classes == "all" else arguments.classes.split(","):
        folder = arguments.folder.resolve() / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        draw = random.Random(f"{name} {arguments.seed}")
        refused = same = 0
        wrong = []
        cases = list(CLASSES[name](folder))
        for number, (files, command) in enumerate(cases):
            count = (arguments.count + number) // len(cases)
            found = flip(files, command, count, draw)
            refused, same, wrong = refused + found[0], same + found[1], wrong + found[2]
        for line in wrong:
            print(f"{name}: {line}")
        print(f"{name}: {refused} refused, {same} the same, {len(wrong)} otherwise")
        failed |= bool(wrong)
    return failed


if __name__ == "__main__":
    sys.exit(main())
