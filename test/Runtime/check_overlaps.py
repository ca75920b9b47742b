"""check_overlaps.py FILE KIND... -- RUN...: of an executable every change that puts scratch of a
command of these KINDs where another view of it lies (accel-mutate-executable overlap=KIND:K), up to
12 of each kind, is run by the command RUN, in which {accx} stands for the changed file. Each is
refused before anything runs (exit status 1, no signal), or gives the losses that FILE gives: what
lies in another place may lie apart there. Prints how many of each kind are refused."""
import collections
import itertools
import os
import re
import subprocess
import sys

MOST = 12


def main():
    split = sys.argv.index("--")
    file, kinds, command = sys.argv[1], sys.argv[2:split], sys.argv[split + 1:]
    refused, bad = collections.Counter(), 0

    def run(path):
        return subprocess.run([part.replace("{accx}", path) for part in command],
                              capture_output=True, text=True, timeout=60)

    def losses(done):
        return re.findall(r'"(?:loss|grad_norm)": [^,]*', done.stdout)

    right = losses(run(file))
    changed = os.path.join(os.path.dirname(os.path.abspath(file)), "changed.accx")
    for kind, index in itertools.product(kinds, range(MOST)):
        found = subprocess.run(["accel-mutate-executable", file, changed,
                                f"overlap={kind}:{index}"],
                               check=True, capture_output=True, text=True).stdout.strip()
        if found != kind:
            continue
        done = run(changed)
        if done.returncode == 1 and "signal" not in done.stderr and not done.stdout:
            refused[kind] += 1
        elif done.returncode or losses(done) != right:
            bad += 1
            print(f"{index} in a {kind}: {done.returncode} {done.stderr.strip()[-200:]}")
    os.remove(changed)
    for kind in kinds:
        print(f"{kind}: {refused[kind]} refused")
    sys.exit(bad > 0 or not right)


if __name__ == "__main__":
    main()
