"""Runs files of tests, two at once, each in a process of its own, and writes what became
of each test in the form of lit's results, which scripts/summarise-tests reads:
run_files.py RESULTS FILE... The processes are forks of this one, which has imported what
most of them need and has read the exporter's functions, seconds for each file."""
import copy
import functools
import json
import logging
import os
import pathlib
import sys
import tempfile
import time
import traceback
import unittest


class Recorder(unittest.TextTestResult):
    """One entry a test; a subtest that fails fails its test."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.codes = {}
        self.seconds = {}

    def startTest(self, test):
        super().startTest(test)
        self.seconds[test.id()] = -time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        self.seconds[test.id()] += time.monotonic()

    def note(self, test, code, reason=""):
        test = getattr(test, "test_case", test)
        if self.codes.get(test.id(), ("PASS",))[0] != "FAIL":
            self.codes[test.id()] = (code, reason)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "PASS")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.note(test, "FAIL")

    def addError(self, test, error):
        super().addError(test, error)
        self.note(test, "FAIL")

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error:
            self.note(test, "FAIL")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "SKIPPED", reason)


def share_exporter():
    """torch.onnx.export reads its 500 functions anew in each call, which is most of what
    the call for a small module takes: now it reads them once, and copies its table."""
    from torch.onnx._internal.exporter import _registration
    read = functools.cache(_registration.ONNXRegistry.from_torchlib)

    def from_torchlib(opset_version=_registration._constants.TORCHLIB_OPSET):
        registry = copy.copy(read(opset_version))
        registry.functions = {name: list(found) for name, found in registry.functions.items()}
        return registry

    _registration.ONNXRegistry.from_torchlib = staticmethod(from_torchlib)
    logging.disable(logging.WARNING)  # what it lacks of torchvision
    from_torchlib()
    logging.disable(logging.NOTSET)


def run(file, results):
    """What a process does: exit status 0 where all tests of the file passed."""
    sys.path.insert(0, str(file.parent))
    suite = unittest.defaultTestLoader.loadTestsFromName(file.stem)
    outcome = unittest.TextTestRunner(resultclass=Recorder, warnings="ignore").run(suite)
    results.write_text(json.dumps([
        {"name": f"python :: {name}", "code": code, "output": reason,
         "elapsed": outcome.seconds.get(name)}
        for name, (code, reason) in outcome.codes.items()]))
    return not outcome.wasSuccessful()


def start(file, work):
    """Forks; what the process prints goes to a file."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        output = os.open(work / f"{file.stem}.txt", os.O_CREAT | os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        status = run(file, work / f"{file.stem}.json")
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def finish(file, failed, work):
    """The results of a file; prints what it printed where it failed, else its summary."""
    output = (work / f"{file.stem}.txt").read_text(errors="replace")
    print(output if failed else output.strip().splitlines()[-3], flush=True)
    results = work / f"{file.stem}.json"
    if results.exists():
        return json.loads(results.read_text())
    return [{"name": f"python :: {file.stem}", "code": "FAIL", "output": ""}]


def main():
    results, *files = map(pathlib.Path, sys.argv[1:])
    import torch._dynamo  # noqa: F401
    import torch.export  # noqa: F401
    share_exporter()
    waiting, running, tests, status = list(files), {}, [], 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        while waiting or running:
            while waiting and len(running) < 2:
                file = waiting.pop(0)
                running[start(file, work)] = file
            process, code = os.wait()
            status |= code != 0
            tests += finish(running.pop(process), code != 0, work)
    results.write_text(json.dumps({"tests": tests}))
    return status


if __name__ == "__main__":
    sys.exit(main())
