"""scatter_inputs.py FOLDER [COLUMN]: the inputs of Inputs/scatter.textproto, and what its
outputs are by ONNX's definition. The first pair is (0, COLUMN)."""
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
import tensorfiles  # noqa: E402  (from scripts/)

folder, column = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else -1
I = [[0, -1], [1, -2], [2, 2], [-3, 1]]  # of each row; twice the same in rows 1 and 2
J = [[2, 2], [0, -3], [1, 0], [-1, 0]]
PAIRS = [[0, column], [-4, 2], [3, 0], [-1, -2]]
K = [2, -3, 1, -1]
x = [[10. * row + place for place in range(3)] for row in range(4)]
news = [[100., 200.], [300., 400.], [500., 600.], [700., 800.]]
four = [1000., 2000., 3000., 4000.]
a, b, c, d, e, f = ([list(row) for row in x] for _ in range(6))
for row in range(4):
    for number in range(2):
        a[row][I[row][number]] = news[row][number]
        b[row][J[row][number]] += news[row][number]
    if column < 3:
        c[PAIRS[row][0]][PAIRS[row][1]] += four[row]
    d[row][K[row]] += four[row]
for row, line in enumerate(x + x):
    for place, number in enumerate(line):
        e[row // 2][place] += number
        f[row % 4][place] += number
for name, shape, kind, rows in (
        ("x", (4, 3), "float32", x), ("i", (4, 2), "int64", I), ("j", (4, 2), "int32", J),
        ("k", (4, 1), "int64", [K]), ("tuples", (4, 2), "int64", PAIRS),
        ("news", (4, 2), "float32", news), ("four", (4,), "float32", [four]),
        ("a", (4, 3), "float32", a), ("b", (4, 3), "float32", b), ("c", (4, 3), "float32", c),
        ("d", (4, 3), "float32", d), ("e", (4, 3), "float32", e), ("f", (4, 3), "float32", f)):
    tensorfiles.write_npy(folder / f"{name}.npy",
                          (shape, kind, [number for row in rows for number in row]))
