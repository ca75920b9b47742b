"""Sweeps memory budgets over a step whose weights are sharded: what zero.gather_once=auto takes (gathers and what is
computed again) is the lesser of what the two lifetimes take that are asked for by name, in compiles of their own; a
plan has no more than its budget; more memory never takes more time; the least of both is what a refusal says, and a
byte less is refused.

    check_gathers.py ACC-OPT MODEL [FLAG…]"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from sampling import ALL  # noqa: E402

BUDGETS = 9 if ALL else 5


def compile(command, once, budget, *flags):
    """The decisions and the planned peak, or the least bytes that a refusal says."""
    done = subprocess.run([*command, f"--set=zero.gather_once={once}", f"--memory-budget={budget}",
                           "--report=decisions", "--json", *flags], capture_output=True, text=True)
    if done.returncode:
        refused = re.search(r"expected a memory budget of at least [^(]*\((\d+)\)", done.stderr)
        assert refused, done.stderr
        return None, int(refused[1])
    decisions, peaks = json.loads(done.stdout), {}
    for one in decisions:
        if one["decision"] == "memory":
            stage = one["of"].split(",")[0]
            peaks[stage] = peaks.get(stage, 0) + one["planned_bytes"]
    return decisions, max(peaks.values())


def seconds(decisions):
    """Of the lifetime that is taken and of what is computed again, of all stages."""
    return sum(one.get("seconds", 0) for one in decisions if one["decision"] in ("gathers", "recompute"))


def lifetime(decisions):
    return next(one["value"] for one in decisions if one["decision"] == "gathers")


def main():
    acc_opt, model, *flags = sys.argv[1:]
    command = [acc_opt, model, "--train", "--loss=loss", "--target=cpu:x86-64-v3", "--set=zero_stage=3", *flags]
    _, least = compile(command, "auto", 1)
    leasts = [compile(command, once, 1)[1] for once in ("true", "false")]
    assert least == min(leasts), (least, leasts)
    assert compile(command, "auto", least - 1)[0] is None
    _, most = compile(command, "true", 1 << 40)
    before, seen = None, set()
    for number in range(BUDGETS):
        budget = least + (most - least) * number // (BUDGETS - 1)
        decisions, peak = compile(command, "auto", budget)
        assert decisions and peak <= budget, (budget, peak)
        forced = {}
        for once, value in (("true", "once"), ("false", "by unit")):
            of, bytes = compile(command, once, budget)
            if of:
                assert lifetime(of) == value and bytes <= budget, (value, budget, bytes)
                forced[value] = seconds(of)
        found, best = seconds(decisions), min(forced.values())
        assert abs(found - best) <= 1e-9 * best, (budget, found, forced)
        assert before is None or found <= before * (1 + 1e-9), (budget, found, before)
        before = found
        again = sum(one.get("seconds", 0) for one in decisions if one["decision"] == "recompute") > 0
        seen.add((lifetime(decisions), again))
        told = next(one for one in decisions if one["decision"] == "memory budget")
        assert told["value"] == "gathers " + lifetime(decisions) and abs(told["seconds"] - found) <= 1e-9 * found, told
        assert len(told["alternatives"]) == 1, told
    print("seen:", *sorted(f"{value}{', computed again' if again else ''};" for value, again in seen))


main()
