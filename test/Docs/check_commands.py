"""Whether docs/AddACommand.md names five places and files that exist, and every file
that names one of the commands which are like what it adds."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
text = (ROOT / "docs" / "AddACommand.md").read_text()
paths = set(re.findall(r"`((?:lib|runtime|dialects|tools|test)/[\w./-]+)`", text))
missing = sorted(path for path in paths if not (ROOT / path).exists())
places = re.findall(r"^(\d)\. \*\*", text, re.MULTILINE)
untold = []
for folder in ("dialects", "lib", "runtime", "tools"):
    for path in sorted((ROOT / folder).rglob("*.*")):
        name = str(path.relative_to(ROOT))
        if path.suffix in (".h", ".cpp", ".td") and name not in paths:
            # A target's own files, and what reuses bytes that a copy would fill.
            if re.search(r"\b(Pack|Coordinate|Fill)(Op|Command)\b", path.read_text()) and \
                    not re.match(r"lib/Target/|runtime/Device/CPU/", name):
                untold.append(name)
if places != list("12345") or len(paths) < 15 or missing or untold:
    sys.exit(f"places {places}, {len(paths)} paths, missing {missing}, not named {untold}")
