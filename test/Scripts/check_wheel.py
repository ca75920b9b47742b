"""Makes a wheel, by scripts/wheel's own functions, of a folder that looks like an installed
one, installs it into an empty environment, runs what is in it, and takes it out again."""

import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import sys

script, tool, work = map(pathlib.Path, sys.argv[1:])
loader = importlib.machinery.SourceFileLoader("wheel", str(script))
wheel = importlib.util.module_from_spec(importlib.util.spec_from_loader("wheel", loader))
loader.exec_module(wheel)

# What a program asks for, and a libstdc++ of which nobody has said when it came.
glibc = wheel.glibc_of(tool)
assert 17 <= glibc <= 60, glibc
wheel.GLIBC_OF_GLIBCXX = {1: 2}
try:
    wheel.glibc_of(tool)
    raise AssertionError("expected a libstdc++ that is not known to be an error")
except SystemExit as error:
    print(error)

shutil.rmtree(work, ignore_errors=True)
prefix = work / "prefix"
for name, text, mode in (("bin/acc-hello", "#!/bin/sh\nexec \"$(dirname \"$0\")/../lib/acc/bin/helper\"\n", 0o755),
                         ("lib/acc/bin/helper", "#!/bin/sh\necho hello\n", 0o755),
                         ("share/doc/acc/README.md", "text\n", 0o644)):
    path = prefix / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
tag = "py3-none-any"  # any machine runs a shell script
made = wheel.write(prefix, "1.2.3", tag, work)
(work / "again").mkdir()
again = wheel.write(prefix, "1.2.3", tag, work / "again")
assert made.read_bytes() == again.read_bytes(), "expected the same bytes twice"

venv = work / "venv"
subprocess.run([sys.executable, "-m", "venv", venv], check=True)


def files():
    return {path for path in venv.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


before = files()
pip = [venv / "bin" / "pip", "--quiet", "--disable-pip-version-check"]
subprocess.run([*pip, "install", "--no-index", made], check=True)
print(subprocess.run([venv / "bin" / "acc-hello"], check=True, text=True, capture_output=True).stdout.strip())
print(subprocess.run([*pip[:1], "show", "acc-compiler"], check=True, text=True, capture_output=True).stdout.splitlines()[1])
assert not (venv / "share/doc/acc/README.md").stat().st_mode & 0o111
subprocess.run([*pip, "uninstall", "-y", "acc-compiler"], check=True)
assert files() == before, files() ^ before
print("removed")
