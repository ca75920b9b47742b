"""mlm, sequence-classification and seq2seq: texts with the special tokens of their model, in
padded rows."""
import json
import pathlib

import numpy as np

from acc_export import Refused

from .classes import Classes
from .packing import IGNORED
from .rows import missing, mix
from .tokens import Tokens


def padded(rows, length, fill):
    """[rows, length] of lists."""
    result = np.full((len(rows), length), fill, np.int64)
    for i, row in enumerate(rows):
        result[i, :len(row)] = row
    return result


class _Texts:
    """Rows of one length from columns of text, or from input_ids that are there already."""

    def __init__(self, options, names, report):
        self.options, self.report = options, report
        self.tokens = Tokens(options.tokenizer) if options.tokenizer else None
        column = options.columns.get
        self.is_tokenised = "text" not in options.columns and "text" not in names and (
            column("input_ids", "input_ids") in names)
        if not self.is_tokenised and self.tokens is None:
            raise Refused("text needs a tokenizer: say --tokenizer FOLDER")

    def pad(self):
        if self.options.pad_token is not None:
            return self.options.pad_token
        if self.tokens is None:
            raise Refused("rows of tokens need the ID that fills them up: say --pad-token ID, or "
                          "--tokenizer FOLDER")
        return self.tokens.token("pad")

    def rows(self, block, present, name, length, pair=None, target=False, prefix=""):
        """(index, {"input_ids", ...}) of the rows whose indices are `present`, of column `name`,
        with that of `pair` behind it. Rows longer than `length` are cut, dropped or refused."""
        values = block.column(self.options.columns.get(name, name))
        others = block.column(self.options.columns.get(pair, pair)) if pair else None
        if self.is_tokenised and not target:
            made = [{"input_ids": [int(x) for x in values[i]]} for i in present]
        else:
            for column in filter(None, (values, others)):
                for i in present:
                    if not isinstance(column[i], str):
                        raise Refused(f"{block.place(i)}: expected text, found "
                                      f"{str(column[i])[:60]}")
            texts = [prefix + values[i] for i in present]
            pairs = [others[i] for i in present] if pair else None
            made = self.tokens.encode(texts, pairs, target) if present else []
        for at, (i, row) in enumerate(zip(present, made)):
            count = len(row["input_ids"])
            if count > length:
                if self.options.long == "error":
                    raise Refused(f"{block.place(i)}: expected at most {length} tokens, found "
                                  f"{count}: say --long cut or drop, or raise the length")
                if self.options.long == "drop":
                    self.report.add("dropped: rows that are too long")
                    continue
                self.report.add("cut: rows that are too long")
                self.report.add("cut: tokens at the end of rows", count - length)
                if self.is_tokenised and not target:
                    row = {"input_ids": row["input_ids"][:length]}
                else:
                    [row] = self.tokens.encode([texts[at]], [pairs[at]] if pairs else None, target,
                                               length)
            yield i, row


def _present(block, names, options, report):
    columns = [block.column(options.columns.get(name, name)) for name in names]
    present = []
    for i in range(block.count):
        if any(column[i] is None for column in columns):
            missing(options, report, block.place(i), "values in " + ", ".join(names))
        else:
            present.append(i)
    return present


def _arrays(rows, length, pad, report):
    """input_ids and attention_mask of encoded rows, and token_type_ids where they have them."""
    ids = [row["input_ids"] for row in rows]
    mask = padded([[1] * len(row) for row in ids], length, 0)
    arrays = {"input_ids": padded(ids, length, pad), "attention_mask": mask}
    if all("token_type_ids" in row for row in rows):
        arrays["token_type_ids"] = padded([row["token_type_ids"] for row in rows], length, 0)
    report.add("tokens", mask.sum())
    report.add("padding", (mask == 0).sum())
    return arrays


def _needed(arrays, *names):
    """The mask is needed where there is padding, which would be attended to."""
    return {"input_ids", *names} | ({"attention_mask"} if not arrays["attention_mask"].all()
                                    else set())


def _optional(arrays, inputs, *names):
    for name in names:
        if name in arrays and not inputs.wants(name):
            del arrays[name]


def _each_part(source, split, report):
    """(block, first row, name of a part of it, the indices of its rows)."""
    seen = 0
    for block in source.blocks():
        for name, indices in split.of(seen, block.count):
            yield block, seen, name, set(indices.tolist())
        seen += block.count
        report.progress(block.count)


# -- masked language models --------------------------------------------------------------

def hide(ids, fair, row_numbers, options, tokens):
    """(input_ids, labels): of the tokens that are `fair` game --mask-probability of 100 % are
    asked for, at least one in a row; of these 80 in 100 become the mask token, 10 any token.
    Draws are mix of the seed, the row's number, the column, and which draw it is."""
    key = mix(np.array([options.seed], np.uint64))

    def draw(which):
        rows = mix(key + np.uint64(which) * np.uint64(1 << 60) + row_numbers.astype(np.uint64))
        columns = np.arange(ids.shape[1], dtype=np.uint64)
        return mix(rows[:, None] + columns) / 2.0 ** 64

    first = np.where(fair, draw(0), 2.0)
    asked = (first < options.mask_probability) | (first == first.min(1, keepdims=True)) & fair
    kind, any_token = draw(1), draw(2)
    # A draw just below 1 rounds to 1.
    size = len(tokens.tokenizer)
    other = np.minimum((any_token * size).astype(np.int64), size - 1)
    hidden = np.where(kind < 0.8, tokens.token("mask"), np.where(kind < 0.9, other, ids))
    return np.where(asked, hidden, ids), np.where(asked, ids, IGNORED)


def masked(options, source, split, inputs, output, report):
    texts = _Texts(options, source.names(), report)
    if texts.tokens is None:
        raise Refused("mlm needs the tokenizer's mask token: say --tokenizer FOLDER")
    length = inputs.length("input_ids", options.sequence, "--sequence")
    pad, column = texts.pad(), "input_ids" if texts.is_tokenised else "text"
    special = np.array(sorted(texts.tokens.specials), np.int64)
    for copy in range(options.copies):
        for block, first, name, indices in _each_part(source, split, report):
            present = [i for i in _present(block, [column], options, report) if i in indices]
            found = list(texts.rows(block, present, column, length))
            if not found:
                continue
            arrays = _arrays([row for _, row in found], length, pad, report)
            fair = (arrays["attention_mask"] == 1) & ~np.isin(arrays["input_ids"], special)
            kept = fair.any(1)
            report.add("dropped: rows without a token that could be asked for", (~kept).sum())
            numbers = np.array([first + i for i, _ in found])[kept] + (copy << 40)
            arrays = {key: value[kept] for key, value in arrays.items()}
            if not kept.any():
                continue
            arrays["input_ids"], arrays["labels"] = hide(arrays["input_ids"], fair[kept], numbers,
                                                         options, texts.tokens)
            report.add("tokens that count in the loss", (arrays["labels"] != IGNORED).sum())
            _optional(arrays, inputs, "token_type_ids")
            output.append(name, inputs.fit(arrays, _needed(arrays, "labels")))
    return {"tokenizer": options.tokenizer, "sequence": length}


# -- classes of sequences ----------------------------------------------------------------

def classified(options, source, split, inputs, output, report):
    names = source.names()
    texts = _Texts(options, names, report)
    length = inputs.length("input_ids", options.sequence, "--sequence")
    column = "input_ids" if texts.is_tokenised else "text"
    label = options.columns.get("label") or ("label" if "label" in names else "labels")
    pair = "pair" if "pair" in options.columns or "pair" in names else None
    classes = Classes(options, source, label, report)
    for block, _, name, indices in _each_part(source, split, report):
        present = [i for i in _present(block, [column, *filter(None, [pair])], options, report)
                   if i in indices]
        values = block.column(label)
        present = [i for i in present if classes.has(values[i], block, i)]
        found = list(texts.rows(block, present, column, length, pair))
        if not found:
            continue
        arrays = _arrays([row for _, row in found], length, texts.pad(), report)
        arrays["labels"] = classes.array([values[i] for i, _ in found], block, found)
        _optional(arrays, inputs, "token_type_ids")
        output.append(name, inputs.fit(arrays, _needed(arrays, "labels")))
    return {"tokenizer": options.tokenizer, "sequence": length, **classes.description()}


# -- pairs -------------------------------------------------------------------------------

def _start(options, texts):
    """The token that a decoder begins with."""
    if options.decoder_start is not None:
        return options.decoder_start
    config = pathlib.Path(options.tokenizer) / "config.json"
    if config.is_file():
        start = json.loads(config.read_text()).get("decoder_start_token_id")
        if start is not None:
            return start
    raise Refused("the model takes decoder_input_ids, and no config.json beside the tokenizer says "
                  "what they begin with: say --decoder-start ID (T5: its pad token)")


def pairs(options, source, split, inputs, output, report):
    texts = _Texts(options, source.names(), report)
    if texts.is_tokenised:
        raise Refused("expected columns 'source' and 'target' of text, found input_ids")
    length = inputs.length("input_ids", options.sequence, "--sequence")
    target = inputs.length("labels", options.target_sequence or (
        None if inputs.asks("labels") else length), "--target-sequence")
    for block, _, name, indices in _each_part(source, split, report):
        present = [i for i in _present(block, ["source", "target"], options, report)
                   if i in indices]
        sources = dict(texts.rows(block, present, "source", length, prefix=options.prefix or ""))
        targets = dict(texts.rows(block, list(sources), "target", target, target=True))
        if not targets:
            continue
        arrays = _arrays([sources[i] for i in targets], length, texts.pad(), report)
        wanted = [row["input_ids"] for row in targets.values()]
        arrays["labels"] = padded(wanted, target, IGNORED)
        report.add("tokens that count in the loss", (arrays["labels"] != IGNORED).sum())
        if inputs.asks("decoder_input_ids"):
            begun = [[_start(options, texts), *row][:target] for row in wanted]
            arrays["decoder_input_ids"] = padded(begun, target, texts.pad())
        _optional(arrays, inputs, "token_type_ids")
        output.append(name, inputs.fit(arrays, _needed(arrays, "labels")))
    return {"tokenizer": options.tokenizer, "sequence": length, "target_sequence": target}
