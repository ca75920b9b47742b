"""Several sequences in one row, which neither attend to nor predict each other."""
import numpy as np

IGNORED = -100


class Packer:
    """Best fit: a sequence goes into the fullest row that has room for it. `most` rows are
    open at a time, and of more the fullest is done."""

    def __init__(self, length, most=256):
        self.length, self.most, self.open = length, most, []

    def add(self, sequence):
        """`sequence`: (tokens, labels), at most `length`. Returns a row that is done, a list of
        sequences, or None."""
        need = len(sequence[0])
        fits = [row for row in self.open if row[0] + need <= self.length]
        if fits:
            row = max(fits, key=lambda row: row[0])
            row[0] += need
            row[1].append(sequence)
        else:
            row = [need, [sequence]]
            self.open.append(row)
        if row[0] == self.length:
            return self._take(row)
        if len(self.open) > self.most:
            return self._take(max(self.open, key=lambda row: row[0]))
        return None

    def _take(self, row):
        self.open = [other for other in self.open if other is not row]
        return row[1]

    def rest(self):
        rows, self.open = [row[1] for row in self.open], []
        return rows


def arrays_of(rows, length, pad, labels_are_next):
    """input_ids, labels, attention_mask (1 where there are tokens), position_ids (which begin
    again with each sequence, and with the padding) and segment_ids (from 1; 0 is padding), all
    [rows, length], of rows of sequences. `labels_are_next`: a label is the token behind; else
    the model shifts them."""
    shape = len(rows), length
    ids, labels = np.full(shape, pad, np.int64), np.full(shape, IGNORED, np.int64)
    positions, segments = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for r, row in enumerate(rows):
        at = 0
        for number, (tokens, wanted) in enumerate(row, 1):
            end = at + len(tokens)
            ids[r, at:end] = tokens
            # What stands before a sequence is not asked for its first token.
            if labels_are_next:
                labels[r, at:end - 1] = wanted[1:]
            else:
                labels[r, at + 1:end] = wanted[1:]
            positions[r, at:end] = np.arange(end - at)
            segments[r, at:end] = number
            at = end
        positions[r, at:] = np.arange(length - at)
    return {"input_ids": ids, "labels": labels, "attention_mask": (segments > 0).astype(np.int64),
            "position_ids": positions, "segment_ids": segments}


def block_mask(segments):
    """[rows, 1, length, length]: whether a token (third) attends to another (fourth): to those
    of its own sequence that are not behind it."""
    same = segments[:, None, :, None] == segments[:, None, None, :]
    return same & np.tri(segments.shape[1], dtype=bool)
