"""Which cases of a long sweep a run of the tests takes: every second or third, others in each of
the sweeps that share a list, so that together they meet all of it; all of them with
ACCEL_SWEEPS=1."""
import os
import zlib

ALL = bool(os.environ.get("ACCEL_SWEEPS"))


def sample(cases, whose, every=3):
    """Every `every`-th of the cases, in their order; from which on follows from `whose`, the
    number of the sweep or its name."""
    cases = list(cases)
    if ALL or not cases:
        return cases
    start = whose if isinstance(whose, int) else zlib.crc32(whose.encode())
    return cases[start % min(every, len(cases))::every]
