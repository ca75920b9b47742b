"""Holds the Containerfile to what an engine would find out late: instructions are those that
there are, every stage has a name, what is copied exists and is not ignored, stages copy from stages
before them, images have tags, and who runs the last stage is not root. There is
no engine on the machines of the tests."""

import json
import pathlib
import sys

INSTRUCTIONS = set("FROM RUN COPY WORKDIR ENV USER CMD ENTRYPOINT ARG LABEL EXPOSE VOLUME".split())


def instructions(text):
    """(number of the first line, instruction, the rest) of each, lines that go on joined."""
    number, kept = 0, ""
    for at, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not (kept or line.strip()):
            continue
        number = number if kept else at
        kept += line.rstrip().removesuffix("\\") if line.rstrip().endswith("\\") else line
        if not line.rstrip().endswith("\\"):
            word, _, rest = kept.strip().partition(" ")
            yield number, word, rest.strip()
            kept = ""
    if kept:
        yield number, "", kept


def check(path):
    root = path.parent
    ignored = {line.strip() for line in (root / ".containerignore").read_text().splitlines()}
    stages, users, errors = [], {}, []
    for number, word, rest in instructions(path.read_text()):
        def refuse(what):
            errors.append(f"{path.name}:{number}: error: {what}")

        words = rest.split()
        if word not in INSTRUCTIONS:
            refuse(f"expected an instruction, found '{word}'")
        elif not stages and word not in ("FROM", "ARG"):
            refuse(f"expected FROM before {word}")
        elif word == "FROM":
            if len(words) != 3 or words[1].upper() != "AS":
                refuse(f"expected a stage with a name, FROM IMAGE AS NAME, found 'FROM {rest}'")
            if ":" not in words[0] and words[0] not in stages or words[0].endswith(":latest"):
                refuse(f"expected an image with a tag, found '{words[0]}'")
            stages.append(words[-1])
        elif word == "COPY":
            origin = [one.removeprefix("--from=") for one in words if one.startswith("--from=")]
            if origin and origin[0] not in stages[:-1]:
                refuse(f"expected a stage before '{stages[-1]}' to copy from, found '{origin[0]}'")
            for source in [] if origin else [one for one in words if not one.startswith("--")][:-1]:
                if not (root / source).exists() or source.rstrip("/") in ignored:
                    refuse(f"expected '{source}' to copy, found none")
        elif word == "USER":
            users[stages[-1]] = rest
        elif word in ("CMD", "ENTRYPOINT"):
            try:
                json.loads(rest)
            except ValueError:
                refuse(f"expected a list of arguments, found '{rest}'")
    if stages and users.get(stages[-1], "root") in ("root", "0"):
        errors.append(f"{path.name}: error: expected a USER of the stage '{stages[-1]}' other than root")
    return errors


if __name__ == "__main__":
    found = check(pathlib.Path(sys.argv[1]))
    print("\n".join(found) or "no findings")
    sys.exit(bool(found))
