"""ONNX's own cases of each operator, as its package of Python generates them, compiled to executables and
run: outputs as the suite says. Those that acc refuses, docs/Conformance.md names with a reason. Needs the
tools, whose folder ACC_BIN names."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import warnings

import ml_dtypes  # noqa: F401  (NumPy's names of narrow types)
import numpy as np
import onnx
from onnx import numpy_helper

from training import ALL, TOOLS, WITHOUT_TOOLS, sample

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "Conformance.md"
# What a message says of an input whose value is needed now.
NEEDED = re.compile(r"--input ([^=]+)=FILE")
# The suite's own is 1e-3; two numbers of 16 bits next to each other differ by more.
RELATIVE, ABSOLUTE = {"bfloat16": 2.0 ** -6, "float16": 2.0 ** -8}, {"float16": 5e-4}


def refused():
    """The patterns of names in the table."""
    return [re.compile(pattern.replace("*", "(?:(?!_expanded).)*"))
            for names in re.findall(r"^\| (`test_[^|]*) \| .* \|$", DOCS.read_text(), re.M)
            for pattern in re.findall(r"`([^`]+)`", names)]


def cases():
    from onnx.backend.test.case.node import collect_testcases
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with np.errstate(all="ignore"):
            return collect_testcases(None)


def write_tensor(value, name, path):
    tensor = value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(
        np.asarray(value), name)
    tensor.name = name
    path.write_bytes(tensor.SerializeToString())
    return numpy_helper.to_array(tensor)


def read_output(path, like):
    """An output of acc-run; of types that NumPy has not, the bits, as it writes them."""
    found = np.load(path)
    return found.view(like.dtype) if found.dtype.itemsize == like.dtype.itemsize else found


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


def check(case, folder):
    """What is wrong, or None."""
    model, data, outputs = folder / "model.onnx", folder / "data", folder / "out"
    data.mkdir(parents=True)
    onnx.save(case.model, model)
    inputs, expected = case.data_sets[0]
    graph = case.model.graph
    files = {}
    for number, (value, declared) in enumerate(zip(inputs, graph.input)):
        if value is None or isinstance(value, (list, tuple)):
            return "sequences and optional values"
        files[declared.name] = data / f"input_{number}.pb"
        write_tensor(value, declared.name, files[declared.name])
    bound = []
    while True:
        compiled = run(TOOLS / "acc-opt", model, "-o", folder / "m.accx", *bound)
        needed = NEEDED.search(compiled.stderr)
        if compiled.returncode == 0 or not needed or needed.group(1) not in files:
            break
        bound.append(f"--input={needed.group(1)}={files.pop(needed.group(1))}")
    if compiled.returncode:
        return compiled.stderr
    ran = run(TOOLS / "acc-run", folder / "m.accx", "--inputs", data, "--outputs", outputs)
    if ran.returncode:
        return ran.stderr
    for number, (value, declared) in enumerate(zip(expected, graph.output)):
        if not declared.name:
            continue
        wanted = write_tensor(value, declared.name, folder / "expected.pb")
        found = read_output(outputs / f"{declared.name.replace('/', '%2F')}.npy", wanted)
        try:
            if wanted.dtype.kind in "biu" and found.dtype == wanted.dtype:
                np.testing.assert_array_equal(found, wanted)
            else:
                np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64),
                                           rtol=RELATIVE.get(wanted.dtype.name, 1e-3),
                                           atol=ABSOLUTE.get(wanted.dtype.name, 1e-6))
        except AssertionError as wrong:
            return f"output {declared.name}: {wrong}"
    return None


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Conformance(unittest.TestCase):
    def test_executables(self):
        """Of operators that others stand for in `_expanded`, the others are cases of their own."""
        chosen = cases() if ALL else sample(
            [case for case in cases()
             if not case.name.endswith("_expanded") and "castlike" not in case.name],
            "executables", 2)
        patterns = refused()
        with tempfile.TemporaryDirectory() as root, concurrent.futures.ThreadPoolExecutor(
                os.cpu_count()) as pool:
            results = list(pool.map(
                lambda case: check(case, pathlib.Path(root) / case.name), chosen))
        passed = sum(result is None for result in results)
        print(f"{passed} of {len(chosen)} of ONNX's cases run")
        for case, wrong in zip(chosen, results):
            is_refused = any(pattern.fullmatch(case.name) for pattern in patterns)
            with self.subTest(case=case.name):
                if is_refused:
                    self.assertIsNotNone(wrong, "is refused no more: strike it in Conformance.md")
                else:
                    self.assertIsNone(wrong)


if __name__ == "__main__":
    unittest.main()
