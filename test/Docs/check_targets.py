"""check_targets.py NAME: whether docs/AddATarget.md names files that exist, with the
target NAME in the place of its GPU, and has a row for each method of Target."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
text = (ROOT / "docs" / "AddATarget.md").read_text().replace("<GPU>", sys.argv[1])
paths = set(re.findall(r"`((?:lib|include|runtime|dialects|tools|test|scripts)/[\w./-]+)`", text))
missing = sorted(path for path in paths if not (ROOT / path).exists())
header = (ROOT / "lib" / "Target" / "Target.h").read_text()
methods = set(re.findall(r"\b(\w+)\([^;{}]*\) const = 0;", header))
told = set(re.findall(r"^\s*\| `(\w+)` \|", text, re.MULTILINE))
own = [path for path in paths if f"/{sys.argv[1]}" in path]
if len(own) < 4 or len(paths) < 12 or missing or methods != told:
    sys.exit(f"{len(paths)} paths, {len(own)} of them the target's own, missing {missing}; "
             f"methods {methods ^ told}")
