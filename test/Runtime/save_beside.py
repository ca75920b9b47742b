"""Saves weights where their name, or a name beside it, is taken or gone.

    save_beside.py PRELOAD names|lost FILE COMMAND...

PRELOAD (ChangeSaves.cpp) acts at the moment when the file is to be named, in the
process that names it: ACCEL_CHANGE_SAVE says how.
"""
import os
import shutil
import subprocess
import sys

preload, kind, target, command = sys.argv[1:3] + [sys.argv[3], sys.argv[4:]]
folder = os.path.dirname(target)
here = os.path.join(os.path.dirname(folder), "here")


def run(change):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(here, ignore_errors=True)
    os.makedirs(folder)
    os.makedirs(here)
    environment = dict(os.environ, LD_PRELOAD=preload,
                       ACCEL_CHANGE_SAVE=f"{change}:{target}")
    return subprocess.run(command + ["--save-weights", target], cwd=here,
                          env=environment, text=True, capture_output=True)


def kept(result):
    assert result.returncode == 1, result.stderr
    said = result.stderr.split("the weights are in '")
    assert len(said) == 2 and "cannot write" in said[0], result.stderr
    path = os.path.join(here, said[1].split("'")[0])
    with open(path, "rb") as file:
        return path, file.read()


result = run("")
assert result.returncode == 0, result.stderr
with open(target, "rb") as file:
    wanted = file.read()

if kind == "names":
    # A link and a file have the first names that it would take.
    for change in ("unnamed", "named"):
        result = run(change)
        assert result.returncode == 0, result.stderr
        with open(target, "rb") as file:
            assert file.read() == wanted
        left = sorted(os.listdir(folder))
        others = [name for name in left if name != os.path.basename(target)]
        assert len(others) == 3, left
        for name in others:
            path = os.path.join(folder, name)
            with open(path) as file:
                assert file.read() == "somebody's", name
        print(f"{change}: saved, others untouched")
else:
    path, found = kept(run("taken"))
    assert found == wanted and os.path.dirname(path) == folder, path
    print("taken: kept beside, the weights are those")
    path, found = kept(run("gone"))
    assert found == wanted and os.path.dirname(path) == here, path
    print("gone: kept here, the weights are those")
shutil.rmtree(here)
