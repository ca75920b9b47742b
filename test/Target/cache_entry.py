"""What a test does to the files of a cache (lib/Target/CPU/Cache.h says what an
entry is).

  cache_entry.py plant FOLDER PRODUCT FORM   gives each remembered product whose
      key contains PRODUCT the form FORM ("packed bf16x6 rows columns"), sealed
      as acc would
  cache_entry.py flip FOLDER --flips N [--seed S] [--run FLAGS] -- COMMAND -o FILE
      N times flips one bit of an entry of FOLDER and compiles with COMMAND: it
      has to succeed, to warn, to leave the folder as it was, and to give the
      same FILE. With --run, acc-run FILE FLAGS has to print the same besides."""
import argparse
import hashlib
import os
import pathlib
import random
import re
import subprocess
import sys

HEADER = 4  # lines


def entries(folder, kind="*"):
    return sorted(pathlib.Path(folder).glob(f"*.{kind}"))


def plant(folder, product, form):
    found = 0
    for path in entries(folder, "form"):
        *head, content = path.read_bytes().split(b"\n", HEADER)
        key = content.decode().split(" ")[0]
        if product not in key:
            continue
        content = f"{key} {form}\n".encode()
        head[2] = b"length %016x" % len(content)
        head[3] = b"content " + hashlib.sha256(content).hexdigest().encode()
        path.write_bytes(b"\n".join(head + [content]))
        found += 1
    if not found:
        sys.exit(f"no product '{product}' is remembered in '{folder}'")


def run(*command, folder=None):
    result = subprocess.run(command, capture_output=True, text=True,
                            env={**os.environ, **({"ACCEL_CACHE": folder} if folder else {})})
    return result.returncode, result.stdout, result.stderr


def losses(executable, flags):
    """What a run computed: every step's loss, and how it ended."""
    code, out, errors = run("acc-run", executable, *flags.split(), "--json")
    return code, re.findall(r'"(?:step|loss|grad_norm)": [^,}]*', out), errors if code else ""


def flip(folder, command, flips, seed, flags):
    executable = pathlib.Path(command[command.index("-o") + 1])

    def compile_it():
        code, _, errors = run(*command, folder=folder)
        return code, errors, executable.read_bytes() if executable.exists() else b""

    if (first := compile_it())[0] != 0:
        sys.exit(first[1])
    code, errors, expected = compile_it()
    kept = {path: path.read_bytes() for path in entries(folder)}
    if code or errors or expected != first[2] or not kept:
        sys.exit(f"a warm cache gives something else: {errors}")
    trained = flags is not None and losses(executable, flags)
    if trained and (trained[0] or not trained[1]):
        sys.exit(f"the run fails: {trained}")
    draw = random.Random(seed)
    places = [(path, bit) for path, whole in kept.items() for bit in range(len(whole) * 8)]
    bad, made_again = 0, 0
    for path, bit in draw.sample(places, flips):
        damaged = bytearray(kept[path])
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        if path.suffix == ".kernel":  # read where no library of them is kept
            for library in path.parent.glob("*.kernels"):
                library.unlink()
        executable.unlink()
        code, errors, found = compile_it()
        warned = errors.count("warning: ") == 1 and path.name in errors
        form = path.suffix == ".form"
        # What is measured again may come out another way: another file.
        same = form or (found == expected and path.read_bytes() == kept[path])
        if code or not warned or not same or (trained and losses(executable, flags) != trained):
            bad += 1
            print(f"bit {bit} of {path.name}: exit {code}, warned {warned}, same {same}\n{errors}")
        made_again += code == 0 and warned
        path.write_bytes(kept[path])
    print(f"{flips} flips in {len(kept)} entries: {made_again} made again, {bad} bad")
    return bad


def main():
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(dest="verb", required=True)
    planter = verbs.add_parser("plant")
    for name in ("folder", "product", "form"):
        planter.add_argument(name)
    flipper = verbs.add_parser("flip")
    flipper.add_argument("folder")
    flipper.add_argument("--flips", type=int, required=True)
    flipper.add_argument("--seed", type=int, default=1)
    flipper.add_argument("--run")
    flipper.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    if arguments.verb == "plant":
        return plant(arguments.folder, arguments.product, arguments.form)
    return flip(arguments.folder, arguments.command, arguments.flips, arguments.seed,
                arguments.run) > 0


if __name__ == "__main__":
    sys.exit(main())
