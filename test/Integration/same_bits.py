"""What check_offload.py and check_offload_activations.py both hold: a run with offload gives the bits
of one without."""
import shutil

from acc import Failed


def expect_same_bits(plain, offload):
    """That four steps give the same, released bytes poisoned, and that each goes on from the other's
    checkpoint; returns what they give: losses and norms, and the weights."""
    expected = plain.train(4)
    if offload.train(4, "--poison") != expected:
        raise Failed("expected the same losses, norms and weights, bit for bit")
    for first, second in ((plain, offload), (offload, plain)):
        checkpoint = first.work / "checkpoint"
        shutil.rmtree(checkpoint, ignore_errors=True)
        begun = first.train(2, "--checkpoint", checkpoint)
        ended = second.train(4, "--resume", checkpoint)
        if begun[0] + ended[0] != expected[0] or ended[1] != expected[1]:
            raise Failed(f"expected to go on from the other's checkpoint bit for bit, found {ended[0]}")
    return expected
