"""libaccel-run.so (runtime/include/accel-c/Run.h), found and described to ctypes."""
import ctypes
import functools
import os
import pathlib
import shutil

from .errors import Error

NAME, VERSION = "libaccel-run.so", 2
DONE, REFUSED, ENDED, PENDING = range(4)
INPUT, OUTPUT, WEIGHT = range(3)
STEP_DONE, STEP_SKIPPED, STEP_FAILED = range(3)
STEP, EVALUATE, FORWARD, GET_WEIGHTS, SET_WEIGHTS, SAVE = range(1, 7)

Told = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class Options(ctypes.Structure):
    _fields_ = [("program", ctypes.c_char_p), ("words", ctypes.POINTER(ctypes.c_char_p)),
                ("warn", Told), ("progress", Told), ("context", ctypes.c_void_p)]


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("rank", ctypes.c_size_t),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p),
                ("bytes", ctypes.c_uint64), ("calls", ctypes.c_uint),
                ("is_row_mask", ctypes.c_int)]


class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("ranks", "threads", "steps", "samples",
                                                    "tokens")] + [
        ("calls", ctypes.c_uint)]


class Step(ctypes.Structure):
    _fields_ = [("step", ctypes.c_int64), ("verdict", ctypes.c_int), ("loss", ctypes.c_double),
                ("seconds", ctypes.c_double)]


class Report(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("value", ctypes.c_double)]


def candidates():
    """Where the library may be: $ACC_LIBRARY, the package's own folder (of a wheel), the
    folder of a build or installation whose bin $ACC_BIN names or the PATH has acc-run in, and
    wherever the system looks."""
    if named := os.environ.get("ACC_LIBRARY"):
        return [named]
    found = [pathlib.Path(__file__).parent / "lib" / NAME]
    program = shutil.which("acc-run")
    for folder in (os.environ.get("ACC_BIN"), program and pathlib.Path(program).resolve().parent):
        if folder:
            found.append(pathlib.Path(folder).resolve().parent / "lib" / NAME)
    return [*(path for path in found if path.exists()), NAME]


@functools.cache
def library():
    """The library, loaded. Errors: there is none, or one that cannot be loaded."""
    path = candidates()[0]
    try:
        found = ctypes.CDLL(str(path))
    except OSError as why:
        raise Error(f"cannot load {NAME}: {why}; say where it is with the variable ACC_LIBRARY, "
                    "or put the folder of acc-run into the PATH") from None
    run, text, status = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for name, result, arguments in (
            ("Open", status, [text, ctypes.POINTER(Options), ctypes.POINTER(run)]),
            ("Close", None, [run]),
            ("Message", text, [run]),
            ("NumTensors", ctypes.c_size_t, [run, status]),
            ("Tensor", ctypes.POINTER(Tensor), [run, status, ctypes.c_size_t]),
            ("Memory", status, [run, status, ctypes.POINTER(ctypes.c_uint64)]),
            ("Offset", ctypes.c_uint64, [run, ctypes.POINTER(Tensor)]),
            ("Info", Info, [run]),
            ("Start", status, [run, status, status, status, text]),
            ("Wait", status, [run, ctypes.c_double]),
            ("Result", Step, [run]),
            ("NumReports", ctypes.c_size_t, [run]),
            ("Report", Report, [run, ctypes.c_size_t]),
            ("DropWeights", None, [run])):
        function = getattr(found, "accelRun" + name)
        function.restype, function.argtypes = result, arguments
        setattr(found, name, function)
    return found
