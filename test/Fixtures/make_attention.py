#!/usr/bin/env python3
"""Records what PyTorch gives for an attention in float64, causal behind an offset, with grouped
heads and rows that see no key: attention/inputs/{q,k,v,g}.npy, and in attention/expected the result
y, its log-sum-exps and the gradients of sum(y * g). Run it with the versions of
requirements.txt; test/Runtime/attention-rectangles.test reads it."""
import pathlib

import numpy as np
import torch

FOLDER = pathlib.Path(__file__).resolve().parent / "attention"
BATCH, HEADS, GROUPS, LENGTH, WIDTH = 2, 4, 2, 16, 4
HIDDEN = 3  # key t is seen by row s where t + HIDDEN <= s
SCALE = 0.5


def main():
    torch.manual_seed(0)
    q = torch.randn(BATCH, HEADS, LENGTH, WIDTH, dtype=torch.float64, requires_grad=True)
    k, v = (torch.randn(BATCH, GROUPS, LENGTH, WIDTH, dtype=torch.float64, requires_grad=True)
            for _ in range(2))
    g = torch.randn(BATCH, HEADS, LENGTH, WIDTH, dtype=torch.float64)
    repeated = [each.repeat_interleave(HEADS // GROUPS, dim=1) for each in (k, v)]
    scores = SCALE * q @ repeated[0].transpose(2, 3)
    places = torch.arange(LENGTH)
    scores = scores.masked_fill(places[None, :] + HIDDEN > places[:, None], float("-inf"))
    # PyTorch's gradient of a row without keys is NaN; here it sees nothing and gives nothing.
    seen = torch.softmax(scores[:, :, HIDDEN:], dim=3) @ repeated[1]
    y = torch.cat([torch.zeros(BATCH, HEADS, HIDDEN, WIDTH, dtype=torch.float64), seen], dim=2)
    dq, dk, dv = torch.autograd.grad((y * g).sum(), (q, k, v))
    for folder, tensors in (("inputs", {"q": q, "k": k, "v": v, "g": g}),
                            ("expected", {"y": y, "lse": torch.logsumexp(scores, dim=3),
                                          "dq": dq, "dk": dk, "dv": dv})):
        (FOLDER / folder).mkdir(parents=True, exist_ok=True)
        for name, tensor in tensors.items():
            np.save(FOLDER / folder / f"{name}.npy", tensor.detach().numpy())


if __name__ == "__main__":
    main()
