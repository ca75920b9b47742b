"""causal-lm: rows of tokens, of which each is asked for the next."""
import numpy as np

from acc_export import Refused

from . import packing
from .rows import missing
from .tokens import Tokens

IGNORED = packing.IGNORED


def _form(names, columns):
    """What the rows are, by their columns."""
    for form in (("messages",), ("prompt", "completion"), ("input_ids",), ("text",)):
        if all(columns.get(name, name).split(".")[0] in names for name in form):
            return form
    raise Refused("expected a column 'messages', 'prompt' and 'completion', 'text' or 'input_ids', "
                  f"found {', '.join(names) or 'no rows'}: name yours, as --column text=body")


def _present(block, form, options, report):
    """Indices of rows of which no value is missing."""
    columns = [block.column(options.columns.get(name, name)) for name in form]
    for i in range(block.count):
        if any(column[i] is None for column in columns):
            missing(options, report, block.place(i), "values in " + ", ".join(form))
        else:
            yield i, [column[i] for column in columns]


def _need_texts(block, rows):
    for i, values in rows:
        if not all(isinstance(value, str) for value in values):
            raise Refused(f"{block.place(i)}: expected text, found {str(values)[:60]}")


def _messages(block, i, values):
    """One list: messages, or those of a prompt and of its completion."""
    for value in values:
        if not isinstance(value, list) or not value:
            raise Refused(f"{block.place(i)}: expected a list of messages with 'role' and "
                          f"'content', found {str(value)[:60]}")
    return sum(values, [])


def _tokenised(block, i, ids, options):
    """Tokens as they are, and which count: by labels, or a mask as TRL names it."""
    ids = [int(x) for x in ids]
    labels, counts = ids, None
    for name in ("labels", "completion_mask", "assistant_masks"):
        if name in block.columns and block.columns[name][i] is not None:
            values = [int(x) for x in block.columns[name][i]]
            if len(values) != len(ids):
                raise Refused(f"{block.place(i)}: expected {len(ids)} numbers in '{name}', as "
                              f"input_ids has, found {len(values)}")
            if name == "labels":
                labels = values
            else:
                counts = values
            break
    if counts is not None and options.loss_on != "all":
        labels = [x if count else IGNORED for x, count in zip(ids, counts)]
    return ids, labels


def _sequences(block, form, options, tokens, report):
    """(index, tokens, labels) of the rows of a block."""
    rows = list(_present(block, form, options, report))
    if form == ("input_ids",):
        for i, (ids,) in rows:
            yield i, *_tokenised(block, i, ids, options)
        return
    if form == ("text",):
        _need_texts(block, rows)
        if rows:
            made = tokens.encode([text for _, (text,) in rows])
            for (i, _), row in zip(rows, made):
                ids = row["input_ids"] if options.no_eos else tokens.with_eos(row["input_ids"])
                yield i, ids, ids
        return
    if form == ("prompt", "completion") and not (rows and isinstance(rows[0][1][0], list)):
        _need_texts(block, rows)
        if options.loss_on == "assistant":
            raise Refused("--loss-on assistant is for messages: of a prompt and a completion say "
                          "completion or all")
        pairs = tokens.completed(*zip(*(values for _, values in rows))) if rows else ()
        pairs = zip((i for i, _ in rows), pairs)
    else:
        tools = block.columns.get("tools", [None] * block.count)
        on = options.loss_on or ("assistant" if form == ("messages",) else "completion")
        pairs = ((i, tokens.chat(_messages(block, i, values), on, block.place(i), tools[i]))
                 for i, values in rows)
    for i, (ids, counts) in pairs:
        if options.loss_on == "all":
            counts = [True] * len(ids)
        yield i, ids, [x if count else IGNORED for x, count in zip(ids, counts)]


def _shorten(ids, labels, length, options, report, place):
    """Pieces of at most `length` tokens."""
    if len(ids) <= length:
        return [(ids, labels)]
    if options.long == "error":
        raise Refused(f"{place}: expected at most {length} tokens, found {len(ids)}: say --long "
                      "cut, drop or split, or raise --sequence")
    if options.long == "drop":
        report.add("dropped: rows that are too long")
        report.add("dropped: tokens of rows that are too long", len(ids))
        return []
    if options.long == "split":
        report.add("split: rows that are too long")
        return [(ids[at:at + length], labels[at:at + length])
                for at in range(0, len(ids), length)]
    report.add("cut: rows that are too long")
    report.add("cut: tokens at the end of rows", len(ids) - length)
    return [(ids[:length], labels[:length])]


def _deliver(rows, split, options, inputs, output, report, length, pad):
    arrays = packing.arrays_of(rows, length, pad, options.labels == "next")
    report.add("tokens", (arrays["segment_ids"] > 0).sum())
    report.add("tokens that count in the loss", (arrays["labels"] != IGNORED).sum())
    report.add("padding", (arrays["segment_ids"] == 0).sum())
    needed = {"input_ids", "labels"}
    shape = inputs.shape("attention_mask")
    if shape is not None and len(shape) > 1:
        arrays["attention_mask"] = packing.block_mask(arrays["segment_ids"])
    elif options.pack:
        # A mask of the padding alone would let sequences attend to each other.
        del arrays["attention_mask"]
        if inputs.spec is not None and not inputs.asks("position_ids") and not inputs.asks(
                "segment_ids"):
            raise Refused("with --pack the sequences of a row must not attend to each other, and "
                          f"the model in '{inputs.folder}' takes nothing that tells them apart: "
                          "export it with position_ids (and no attention_mask), or with an "
                          "attention_mask of [batch, 1, length, length]")
    if not options.pack:
        del arrays["segment_ids"]
        if not inputs.asks("position_ids"):
            del arrays["position_ids"]
    output.append(split, inputs.fit(arrays, needed))


def convert(options, source, split, inputs, output, report):
    tokens = Tokens(options.tokenizer) if options.tokenizer else None
    form = _form(source.names(), options.columns)
    if tokens is None and form != ("input_ids",):
        raise Refused(f"rows of {' and '.join(form)} need a tokenizer: say --tokenizer FOLDER")
    length = inputs.length("input_ids", options.sequence, "--sequence")
    if options.pad_token is not None:
        pad = options.pad_token
    else:
        # It is masked where it matters; some models of this kind have none.
        found = tokens and (tokens.tokenizer.pad_token_id, tokens.eos)
        pad = next((x for x in found or () if x is not None), 0)
    packers = {name: packing.Packer(length) for name in split.names}
    seen = 0
    for block in source.blocks():
        parts = {int(i): name for name, indices in split.of(seen, block.count) for i in indices}
        done = {name: [] for name in split.names}
        for i, ids, labels in _sequences(block, form, options, tokens, report):
            for piece in _shorten(ids, labels, length, options, report, block.place(i)):
                if not any(label != IGNORED for label in piece[1][1:]):
                    report.add("dropped: sequences in which no token is predicted")
                    continue
                name = parts[i]
                row = packers[name].add(piece) if options.pack else [piece]
                report.add("sequences")
                if row:
                    done[name].append(row)
        for name, rows in done.items():
            if rows:
                _deliver(rows, name, options, inputs, output, report, length, pad)
        seen += block.count
        report.progress(block.count)
    if tokens:
        report.add("prompts whose last token goes on into the completion, and is masked",
                   tokens.straddled)
    for name, packer in packers.items():
        if rest := packer.rest():
            _deliver(rest, name, options, inputs, output, report, length, pad)
    return {"tokenizer": options.tokenizer, "sequence": length, "columns": list(form)}
