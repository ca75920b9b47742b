"""check_data.py FOLDER RANKS,MICRO-BATCHES… [--file] [--rows] -- OPTION…: which samples training
reads; with --file each epoch has the same order, with --rows the data are no stream, in which
sample s + 1 follows sample s. Sample s of the data is the tokens 100·s, 100·s + 1, …; the programs
FOLDER/RANKS-MICRO-BATCHES/m.accx, all of one batch, give back the inputs of
their last step."""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts"))
import tensorfiles

folder = pathlib.Path(sys.argv[1])
end = sys.argv.index("--")
layouts, options = sys.argv[2:end], sys.argv[end + 1:]
in_file, in_rows = "--file" in layouts, "--rows" in layouts
layouts = [layout for layout in layouts if not layout.startswith("--")]
SAMPLES, LENGTH, STEPS = 10, 8, 5


def read(path):
    return list(tensorfiles.read_npy(path)[2])


def batches(layout):
    """The sample numbers of each step."""
    result = []
    for step in range(1, STEPS + 1):
        program = folder / layout
        subprocess.run(["acc-run", program / "m.accx", "--inputs", program, "--steps",
                        str(step), "--outputs", program / "out", *options],
                       check=True, stdout=subprocess.DEVNULL)
        tokens = read(program / "out" / "seen.input_ids.npy")
        rows = [tokens[i:i + LENGTH] for i in range(0, len(tokens), LENGTH)]
        assert all(row == list(range(row[0], row[0] + LENGTH)) for row in rows), rows
        labels = read(program / "out" / "seen.labels.npy")
        if "next" in options:
            rows = [row[1:] + [-100 if in_rows or row[0] // 100 == SAMPLES - 1
                               else row[0] + 100] for row in rows]
        assert labels == sum(rows, []), labels
        mask = read(program / "out" / "seen.attention_mask.npy")
        assert mask == [1] * len(tokens), mask
        result.append([token // 100 for token in tokens[::LENGTH]])
    return result


found = [batches(layout) for layout in layouts]
assert all(each == found[0] for each in found), found
order = sum(found[0], [])
epochs = [order[i:i + SAMPLES] for i in range(0, len(order), SAMPLES)]
for epoch in epochs:
    assert sorted(epoch) == list(range(SAMPLES)), epoch
assert len(set(map(tuple, epochs))) == (1 if in_file else len(epochs)), epochs
print("order", *epochs[0])
