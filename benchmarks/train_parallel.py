#!/usr/bin/env python3
"""One training step of GPT-2 124M or of a Llama of 110M on two ranks that share more than
the batch. `--what=tensor`: every weight (tensor parallelism), beside PyTorch's DTensor (gloo) and
JAX on two devices. `--what=sequence`: one sequence (Ulysses and context parallelism), beside the
same in PyTorch and JAX. `--what=pipeline`: the layers of GPT-2, in 8 micro-batches, beside
PyTorch's torch.distributed.pipelining and acc's own data parallelism. As train.py, which it shares all else with; the newest pages
are benchmarks/results/*-tensor-*.md, *-sequence-*.md and *-pipeline-*.md."""
import train
import train_parallel_peers

RANKS = 2
# acc's layouts: the flags of each.
LAYOUTS = {
    "tensor": {"acc tp": ["--mesh=tp=2"],
               "acc tp rows": ["--mesh=tp=2", "--set=sequence_parallelism=true"]},
    "sequence": {"acc sp": ["--mesh=sp=2"], "acc cp": ["--mesh=cp=2"],
                 "acc cp ring": ["--mesh=cp=2", "--set=cp.strategy=ring"]},
    "pipeline": {"acc pp": ["--mesh=pp=2", "--micro-batches=8"],
                 "acc pp zb-h1": ["--mesh=pp=2", "--micro-batches=8", "--schedule=zb-h1"],
                 "acc dp": ["--mesh=dp=2"]},
}
# By --what, unless said otherwise: rows of the batch and their length, and how many peers live at
# the same time: a long sequence takes some GB of each.
SIZES = {"tensor": (4, 128, 4), "sequence": (1, 2048, 1), "pipeline": (8, 128, 3)}


def main():
    arguments = train.parser(__doc__)
    arguments.add_argument("--what", choices=LAYOUTS, required=True)
    arguments.add_argument("--precisions", default="fp32", help="fp32 and bf16, by comma")
    arguments.add_argument("--together", type=int, help="peers that live at the same time beside acc")
    arguments.set_defaults(batch=None, sequence=None)
    options = arguments.parse_args()
    batch, sequence, together = SIZES[options.what]
    options.batch = options.batch or batch
    options.sequence = options.sequence or sequence
    together = options.together or together
    wanted = options.only.split(",")
    peers = [(name, kind) for name, kind in train_parallel_peers.PEERS[options.what].items()
             if not options.only or name in wanted]
    groups = []
    for precision in options.precisions.split(","):
        for first in range(0, len(peers), together):
            some = dict(peers[first:first + together])
            groups.append({"precision": precision, "ranks": RANKS, "layouts": LAYOUTS[options.what],
                           "peers": some, "script": ("train_parallel_peers.py", options.what),
                           **({"beside": ", ".join(some)} if len(some) < len(peers) else {})})
    what = options.what
    if (options.batch, options.sequence) != (batch, sequence):
        what += f"-{options.batch}x{options.sequence}"
    train.record(options, what, groups)


if __name__ == "__main__":
    main()
