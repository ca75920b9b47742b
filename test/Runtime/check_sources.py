"""check_sources.py FOLDER write: writes data of several kinds, of 10 samples of 8 tokens or
more: sample s of corpus c has the tokens 1000·c + 100·s, 1000·c + 100·s + 1, …

check_sources.py FOLDER run STEPS -- OPTION…: the first token of each row of each step of
FOLDER/2,2, and of its labels."""
import pathlib
import random
import subprocess
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts"))
import tensorfiles

folder = pathlib.Path(sys.argv[1])
LENGTH = 8


def dataset(name, corpus, samples):
    """A dataset of Megatron-LM: sequences of any length that cut the stream of samples,
    and one token behind them; uint16 or int32."""
    tokens = [1000 * corpus + 100 * s + i for s in range(samples) for i in range(LENGTH)]
    tokens.append(1000 * corpus + 100 * samples)
    draw, lengths = random.Random(corpus), []
    while sum(lengths) < len(tokens):
        lengths.append(min(draw.randint(0, 12), len(tokens) - sum(lengths)))
    letter, code, width = ("H", 8, 2) if corpus % 2 else ("i", 4, 4)
    starts = [width * sum(lengths[:i]) for i in range(len(lengths))]
    bounds = [0] + list(range(1, len(lengths), 2)) + [len(lengths)]
    (folder / f"{name}.bin").write_bytes(struct.pack(f"<{len(tokens)}{letter}", *tokens))
    (folder / f"{name}.idx").write_bytes(
        b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(lengths), len(bounds))
        + struct.pack(f"<{len(lengths)}i", *lengths) + struct.pack(f"<{len(starts)}q", *starts)
        + struct.pack(f"<{len(bounds)}q", *bounds))


def safetensors(path, tensors):
    import json
    header, body = {}, b""
    for name, values in tensors.items():
        part = struct.pack(f"<{len(values)}h", *values)
        header[name] = {"dtype": "I16", "shape": [len(values) // LENGTH, LENGTH],
                        "data_offsets": [len(body), len(body) + len(part)]}
        body += part
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def read(path):
    return list(tensorfiles.read_npy(path)[2])


if sys.argv[2] == "write":
    dataset("one", 1, 10)
    dataset("two", 2, 7)
    rows = [100 * s + i for s in range(10) for i in range(LENGTH)]
    ones = [1] * len(rows)
    safetensors(folder / "s.safetensors",
                {"input_ids": rows, "labels": rows, "attention_mask": ones, "more": ones})
    safetensors(folder / "t.safetensors", {"rows": rows})
else:
    steps, options = int(sys.argv[3]), sys.argv[sys.argv.index("--") + 1:]
    program = folder / "2,2"
    for step in range(1, steps + 1):
        subprocess.run(["acc-run", program / "m.accx", "--inputs", program, "--steps",
                        str(step), "--outputs", program / "out", *options],
                       check=True, stdout=subprocess.DEVNULL)
        tokens = read(program / "out" / "seen.input_ids.npy")
        labels = read(program / "out" / "seen.labels.npy")
        rows = [tokens[i:i + LENGTH] for i in range(0, len(tokens), LENGTH)]
        assert all(row == list(range(row[0], row[0] + LENGTH)) for row in rows), rows
        if "next" in options:  # of the stream, over the bounds of samples
            assert all(labels[i:i + LENGTH] == row[1:] + [row[0] + 100]
                       for i, row in zip(range(0, len(labels), LENGTH), rows)), labels
        else:
            assert labels == tokens, labels
        print("step", step, *(row[0] for row in rows))
