"""Makes data sets into the .npy files that `acc-run --data NAME=FILE,...` reads: one file
for each input of a model, whose rows are samples. Text goes through a tokenizer, tables and
tensors keep their numbers, images are resized. Everything streams: memory does not grow with
the data. Libraries (NumPy, transformers, pyarrow, Pillow) are imported when they are needed.

    import acc_data
    summary = acc_data.convert("causal-lm", ["chat.jsonl"], "data", tokenizer="model",
                               sequence=1024, pack=True)
"""
from acc_export import Refused, __version__

__all__ = ["Refused", "__version__", "convert", "data_text"]


def convert(kind, sources, dir, **options):
    """What `acc-data KIND SOURCE... -o dir` does; `options` are its flags, with '_' for '-';
    `--for` is `model`, `--column` a dict `columns` {role: column}, and what is repeatable a list.

    Returns what data.json holds, beside "dir" and "seconds". Raises `Refused`, one sentence,
    or OSError; no folder is left half written then.
    """
    from . import cli
    parsed = cli.make_parser().parse_args([kind, *map(str, sources), "-o", str(dir)])
    for name, value in options.items():
        if name not in vars(parsed):
            raise TypeError(f"acc_data.convert() has no option '{name}'")
        setattr(parsed, name, value)
    return cli.run(parsed)


def data_text(summary, split="all"):
    """What `acc-run --data` takes, of convert()'s answer; `split` is train or validation where
    it has these."""
    from . import cli
    return cli.data_text(summary, split)
