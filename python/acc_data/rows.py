"""Which rows train and which validate, and what became of them: counts of all that was
read, written, cut and dropped, and a line now and then while it lasts."""
import collections
import sys
import time

import numpy as np

from acc_export import Refused


def mix(values):
    """The finisher of splitmix64 (Steele, Lea and Flood, 2014), of an array of uint64."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ values >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ values >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return values ^ values >> np.uint64(31)


class Split:
    """Row `i` of the sources validates where mix(mix(seed) + i) / 2^64 < fraction: it does not
    depend on the other rows, so that more of them move none."""

    def __init__(self, fraction, seed):
        self.fraction = fraction
        self.key = mix(np.array([seed], np.uint64))
        self.names = ("train", "validation") if fraction else ("",)

    def of(self, first, count):
        """(name, indices into first … first + count - 1) of each part."""
        if not self.fraction:
            return [("", np.arange(count))]
        drawn = mix(self.key + np.arange(first, first + count, dtype=np.uint64))
        held = drawn / 2.0 ** 64 < self.fraction
        return [("train", np.flatnonzero(~held)), ("validation", np.flatnonzero(held))]


class Report:
    """Counts by reason. `tell` hears a line every two seconds."""

    def __init__(self, tell=None):
        self.read = 0
        self.counts = collections.Counter()
        self.tell, self.began = tell, time.monotonic()
        self.last = self.began
        self.is_terminal = tell is not None and sys.stderr.isatty()

    def add(self, reason, count=1):
        if count:
            self.counts[reason] += int(count)

    def progress(self, read, doing="read"):
        """`read` more rows are done. On a terminal every two seconds, in a log every thirty
        after the first."""
        self.read += read
        now = time.monotonic()
        every = 2 if self.is_terminal or self.last == self.began else 30
        if self.tell and now - self.last >= every:
            self.last = now
            self.tell(f"{self.read:,} rows {doing}, {now - self.began:.0f} s...")


def missing(options, report, place, what):
    """A value that is not there: counted with --missing=drop, else refused."""
    if options.missing != "drop":
        raise Refused(f"{place}: expected {what}, found none: mend the row, or leave out all such "
                      "rows with --missing drop")
    report.add("dropped: a value is missing")
