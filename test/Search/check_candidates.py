"""Sweeps memory budgets over a step of which more is open than recomputation, and holds what is told against compiles in
which all of that is said by name: what fits and what does not, with how many bytes; the same plan for the choice; no
alternative takes less time; more memory never takes more time; the least that a refusal says is met, and a byte less
refused.

    check_candidates.py ACC-OPT MODEL --open FLAG=VALUE[,VALUE…] … [FLAG…]

A VALUE is `SAID:TOLD`: what is said by name, and what the decision calls it (nothing: it is not mentioned)."""
import argparse
import itertools
import json
import re
import subprocess

BUDGETS = 4


def compile(command, settings, budget):
    """The decisions by name and the bytes of each arena; or none, and the least bytes that the error says."""
    done = subprocess.run([*command, *(f"{name}={value}" for name, value in settings.items()),
                           f"--memory-budget={budget}", "--report=decisions", "--json"], capture_output=True, text=True)
    if done.returncode:
        refused = re.search(r"expected a memory budget of at least [^(]*\((\d+)\)", done.stderr)
        assert refused, done.stderr
        return None, int(refused[1])
    decisions = json.loads(done.stdout)
    return decisions, {one["of"]: one["planned_bytes"] for one in decisions if one["decision"] == "memory"}


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("acc_opt")
    parser.add_argument("model")
    parser.add_argument("--open", action="append", default=[])
    args, flags = parser.parse_known_args()
    command = [args.acc_opt, args.model, "--train", "--loss=loss", "--target=cpu:x86-64-v3", *flags]
    names, values = [], []
    for each in args.open:
        name, said = each.rsplit("=", 1)
        names.append(name)
        values.append([one.split(":", 1) for one in said.split(",")])
    combinations = {", ".join(told for _, told in one if told) or "all on the device":
                    dict(zip(names, (said for said, _ in one))) for one in itertools.product(*values)}
    opened = {name: "auto" for name in names}
    least = compile(command, opened, 1)[1]
    leasts = {told: compile(command, one, 1)[1] for told, one in combinations.items()}
    assert least == min(leasts.values()), (least, leasts)
    assert compile(command, opened, least - 1)[0] is None
    most = sum(compile(command, next(iter(combinations.values())), 1 << 40)[1].values())
    before, chosen = None, []
    for number in range(BUDGETS):
        budget = least + (most - least) * number // (BUDGETS - 1)
        decisions, arenas = compile(command, opened, budget)
        told = next(one for one in decisions if one["decision"] == "memory budget")
        rows = [told, *told["alternatives"]]
        assert {row["value"] for row in rows} == set(combinations), rows
        for row in rows:
            if "not faster" in row.get("detail", ""):
                assert row["seconds"] >= told["seconds"], (budget, row, told)
                continue
            if "seconds" in row:
                assert leasts[row["value"]] <= budget and row["seconds"] >= told["seconds"], (budget, row, told)
            else:
                assert budget < leasts[row["value"]] == row["bytes"], (budget, row)
        planned = compile(command, combinations[told["value"]], budget)[1]
        assert planned == arenas, (budget, told, planned, arenas)
        assert before is None or told["seconds"] <= before * (1 + 1e-9), (budget, told, before)
        before = told["seconds"]
        if not chosen or chosen[-1] != told["value"]:
            chosen.append(told["value"])
    print("chosen:", *(f"{value};" for value in chosen))


main()
