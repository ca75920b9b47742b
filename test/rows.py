"""A lit format for tests that differ in a few words: a `.rows` file is a test with holes,
and each of its rows a test of its own, with a result, a time and a folder of its own.

    REQUIRES: models
    RUN: rm -rf %t
    RUN: %run-export %models/export/%{model} --work %t %{flags}

    ROWS: model | flags
    legacy13_gpt2_os17 | --count attention=2 --count gelu=2
    legacy13_llama_loss_os17 |

The first column names the row (`acc :: Integration/exports.rows/legacy13_gpt2_os17`);
`lit --filter=NAME` runs one. A line that begins with # is a comment. Rows behind a line
`SWEEP:` run with ACCEL_SWEEPS=1 alone (sampling.py). All else is as in a `.test` file."""

import os

import lit.formats
import lit.Test
import lit.TestRunner

from sampling import ALL


class Row(lit.Test.Test):
    """One row: its text is that of the whole file, its name and folder its own."""

    def __init__(self, suite, path_in_suite, config, columns, cells, is_swept):
        super().__init__(suite, path_in_suite + (cells[0],), config)
        self.file = suite.getSourcePath(path_in_suite)
        self.is_swept = is_swept
        self.holes = [("%{" + column + "}", cell) for column, cell in zip(columns, cells)]

    def getSourcePath(self):
        return self.file

    def getExecPath(self):
        # Beside those of the folder's other tests: numbers.rows.three.
        return self.suite.getExecPath(self.path_in_suite[:-1]) + "." + self.path_in_suite[-1]


def read_rows(path):
    """The names of the columns, the cells of each row, and how many rows stand before
    those of the sweep. Refuses what would be run otherwise than it reads: a row of too few
    cells, two of one name."""
    lines = iter(open(path).read().splitlines())
    columns = next((line for line in lines if line.startswith("ROWS: ")), None)
    if columns is None:
        raise ValueError(f"{path}: expected a line 'ROWS: NAME | …', found none")
    columns = [column.strip() for column in columns[len("ROWS: "):].split("|")]
    rows, num_always = [], None
    for line in lines:
        if line == "SWEEP:":
            num_always = len(rows)
            continue
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != len(columns):
            raise ValueError(f"{path}: expected {len(columns)} cells, found '{line}'")
        if not cells[0] or os.sep in cells[0] or cells[0] in [row[0] for row in rows]:
            raise ValueError(f"{path}: expected a name of its own for each row, found '{line}'")
        rows.append(cells)
    if not rows:
        raise ValueError(f"{path}: expected a row, found none")
    return columns, rows, len(rows) if num_always is None else num_always


class ShTestOrRows(lit.formats.ShTest):
    def getTestsForPath(self, testSuite, path_in_suite, litConfig, localConfig):
        if not path_in_suite[-1].endswith(".rows"):
            yield from super().getTestsForPath(
                testSuite, path_in_suite, litConfig, localConfig)
            return
        try:
            columns, rows, num_always = read_rows(testSuite.getSourcePath(path_in_suite))
        except ValueError as error:
            litConfig.fatal(str(error))
        for number, cells in enumerate(rows):
            yield Row(testSuite, path_in_suite, localConfig, columns, cells, number >= num_always)

    def execute(self, test, litConfig):
        if getattr(test, "is_swept", False) and not ALL:
            return lit.Test.Result(lit.Test.UNSUPPORTED, "one more of a sweep: ACCEL_SWEEPS=1 runs it")
        return lit.TestRunner.executeShTest(
            test, litConfig, self.execute_external,
            self.extra_substitutions + getattr(test, "holes", []),
            self.preamble_commands)
