"""Spoils the schedule of a local program of several stages in every way that is
one change of a line, and asserts that the proof refuses each: edges that are gone,
or come from another result of the same type; runs that are gone, doubled or, if
of one micro-batch, exchanged with the next; tasks of another stage; another number of stages.

usage: mutate_stages.py local.mlir train.mlir least [same...]

least: how many mutants there must be; same: those that mean the same, as they are
printed, which the proof must accept."""
import re
import subprocess
import sys

local, train, least, same = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
lines = open(local).read().split("\n")


def refuses(text):
    """The error of the proof, or of the verifier; none if it accepts."""
    ran = subprocess.run(
        ["acc-opt", "-", f"--dist-verify-equivalence=logical={train}", "-o", "/dev/null"],
        input=text, capture_output=True, text=True)
    if ran.returncode not in (0, 1):
        sys.exit(f"expected an error, found exit status {ran.returncode}:\n{ran.stderr[-2000:]}")
    return ran.stderr if ran.returncode else None


def results_of_tasks():
    """The types of each task's results, by its name, in their order."""
    types = {}
    for function in "\n".join(lines).split("func.func private @")[1:]:
        signature = re.match(r"(\w+)\(.*?\) -> (.*?) attributes {dist\.task", function, re.S)
        if signature:
            types[signature[1]] = re.findall(r"tensor<[^>]*>", signature[2])
    return types


def mutants():
    types = results_of_tasks()
    for number, line in enumerate(lines):
        def changed(*new):
            return "\n".join(lines[:number] + list(new) + lines[number + 1:])
        edge = re.match(r"\s*dist\.edge @(\w+) (\d+) -> @(\w+) (\d+)", line)
        if edge:
            task, result = edge[1], int(edge[2])
            yield f"no {line.strip()}", changed()
            for other, its in types.items():
                for index, type in enumerate(its):
                    if type == types[task][result] and (other, index) != (task, result):
                        new = line.replace(f"@{task} {result} ->", f"@{other} {index} ->")
                        yield f"{line.strip()} from @{other} {index}", changed(new)
        run = re.match(r"\s*dist\.run @(\w+)\[(.*)\]", line)
        if run:
            yield f"no {line.strip()}", changed()
            yield f"{line.strip()} twice", changed(line, line)
            after = lines[number + 1]
            next = re.match(r"\s*dist\.run @(\w+)\[(.*)\]", after)
            # Micro-batches have nothing of each other: another order of them is
            # another schedule.
            apart = next and next[2] != run[2] and not any(
                re.match("(count|prepare|update)", name) for name in (run[1], next[1]))
            if next and not apart:
                text = "\n".join(lines[:number] + [after, line] + lines[number + 2:])
                yield f"{line.strip()} after {after.strip()}", text
        stage = re.search(r"#dist\.task<\w+ stage (\d)", line)
        if stage:
            other = "1" if stage[1] == "0" else "0"
            yield f"{line.strip()[:60]} on stage {other}", changed(
                line.replace(f"stage {stage[1]}", f"stage {other}", 1))
        if "dist.mesh" in line:
            yield "another stage in the mesh", changed(re.sub(r'"pp" = \d', '"pp" = 4', line))


assert refuses("\n".join(lines)) is None, "the program itself is refused"
accepted, count = [], 0
for what, text in mutants():
    count += 1
    if refuses(text) is None:
        accepted.append(what)
print(f"{count} mutants, {len(accepted)} of them accepted")
for what in accepted:
    print("accepted:", what)
sys.exit(accepted != same or count < least)
