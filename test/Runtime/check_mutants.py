"""check_mutants.py FILE COUNT SEED RUN...: runs COUNT mutants of an executable by
the command RUN, in which {accx} and {out} stand for the mutant and its output
folder. Each must be refused (exit code 1), or give what FILE itself gives, with
two exceptions, which are programs too: one in which a number means something else
(MEANING), and one that reads another live value of the same shape (WIRING), of
which there may be one in twenty. Nothing may end by a signal or hang.
"""

import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

# What no check can tell from what was meant: numbers, names and places of values
# that are what they say.
MEANING = re.compile(
    r"""\.(seed|target|features\[\]|features|unshifted_labels)$
    | ^\.(states|folded)
    | ^\.(inputs|outputs)\[\]\.name$
    | \.value(\[\])?$ | \.scale$ | \.accumulate$ | \.form\b
    | \.(combine|permutation|delta|tag)\b
    | ^\.(inputs|outputs)(\[\])?$""",
    re.VERBOSE,
)

# What there is none of: other results by another field, a hang, an end by a
# signal, and what a sanitizer has found.
FAILURES = "other", "hang", "signal", "finding"

WIRING = re.compile(r"\.commands\[\](\.\w|$)|\.commands$|\.segments|\.loops|\.releases")


def run(command, accx, out, timeout):
    fill = [part.replace("{accx}", accx).replace("{out}", out) for part in command]
    process = subprocess.run(fill, capture_output=True, text=True, timeout=timeout)
    files = {}
    for folder, _, names in os.walk(out):
        for name in names:
            path = os.path.join(folder, name)
            files[os.path.relpath(path, out)] = open(path, "rb").read()
    numbers = re.findall(r'"(?:loss|grad_norm)": [^,]*', process.stdout)
    return process, (files, numbers)


def main():
    file, count, seed, *command = sys.argv[1:]
    folder = os.path.dirname(os.path.abspath(file))
    with tempfile.TemporaryDirectory() as scratch:

        def out_of(name):
            path = os.path.join(scratch, name)
            os.mkdir(path)
            return path

        process, expected = run(command, file, out_of("first"), 120)
        assert process.returncode == 0, process.stderr
        assert expected[0] or expected[1], "the command gives no results"

        def one(number):
            # Weights are found beside the file.
            mutant = os.path.join(folder, f"mutant-{os.getpid()}-{number}.accx")
            try:
                what = subprocess.run(
                    ["accel-mutate-executable", file, mutant, str(int(seed) + number)],
                    capture_output=True, text=True, check=True,
                ).stdout.strip()
                try:
                    process, results = run(command, mutant, out_of(str(number)), 60)
                except subprocess.TimeoutExpired:
                    return "hang", number, what, ""
            finally:
                if os.path.exists(mutant):
                    os.remove(mutant)
            said = process.stderr.strip()
            if process.returncode not in (0, 1) or "ended by signal" in said:
                return "signal", number, what, said
            if "Sanitizer" in said or "runtime error: " in said:
                return "finding", number, what, said
            if "made progress" in said:
                return "hang", number, what, said
            if process.returncode == 1:
                return "refused", number, what, said
            if results == expected:
                return "same", number, what, said
            field = what.split(": ")[0]
            kind = ("meaning" if MEANING.search(field) else
                    "wiring" if WIRING.search(field) else "other")
            return kind, number, what, said

        counts = collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for kind, number, what, said in pool.map(one, range(int(count))):
                counts[kind] += 1
                if kind in FAILURES or os.environ.get("VERBOSE") == kind:
                    print(f"{kind}: {int(seed) + number}: {what}: {said[-300:]}", flush=True)
    print(", ".join(f"{counts[kind]} {kind}" for kind in
                    ("refused", "same", "meaning", "wiring", *FAILURES)))
    failed = counts["wiring"] * 20 > int(count) or any(counts[kind] for kind in FAILURES)
    sys.exit(1 if failed else 0)


main()
