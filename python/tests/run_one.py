"""Runs one file of tests and writes what became of each, in the form of lit's results,
which scripts/summarise-tests reads: run_one.py FILE RESULTS."""
import json
import pathlib
import sys
import unittest


class Recorder(unittest.TextTestResult):
    """One entry a test; a subtest that fails fails its test."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.codes = {}

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


def main():
    file, results = map(pathlib.Path, sys.argv[1:])
    sys.path.insert(0, str(file.parent))
    suite = unittest.defaultTestLoader.loadTestsFromName(file.stem)
    outcome = unittest.TextTestRunner(resultclass=Recorder, warnings="ignore").run(suite)
    results.write_text(json.dumps({"tests": [
        {"name": f"python :: {name}", "code": code, "output": reason}
        for name, (code, reason) in outcome.codes.items()]}))
    return not outcome.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
