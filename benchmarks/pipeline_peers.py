"""The peers of train_parallel.py that divide GPT-2's layers among two ranks: PyTorch's
torch.distributed.pipelining (gloo), by schedule. It knows no tied weights, so both ranks have
the table and add up its gradients, as Megatron-LM does; nor a norm over ranks."""
import models
from train_peers import Torch

MICRO_BATCHES = 8


class Pipelined(Torch):
    """1F1B: the first six blocks on rank 0, the others with the logits on rank 1."""

    ranks = 2
    schedule = "Schedule1F1B"

    def share_out(self, *inputs):
        return inputs

    def wrap(self, model):
        from torch.distributed import pipelining

        torch, body = self.torch, model.transformer
        half = len(body.h) // 2

        class First(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.wte, self.wpe, self.h = body.wte, body.wpe, body.h[:half]

            def forward(self, tokens):
                x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1])[None])
                for block in self.h:
                    x = block(x)
                return x

        class Last(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.h, self.ln_f, self.lm_head = body.h[half:], body.ln_f, model.lm_head

            def forward(self, x):
                for block in self.h:
                    x = block(x)
                return self.lm_head(self.ln_f(x))

        def loss(logits, labels):
            return torch.nn.functional.cross_entropy(logits[:, :-1].float().flatten(0, 1), labels[:, 1:].flatten())

        part = Last() if self.rank else First()
        self.table = part.lm_head.weight if self.rank else part.wte.weight
        stage = pipelining.PipelineStage(self.compile(part), self.rank, self.ranks, torch.device("cpu"))
        self.pipeline = getattr(pipelining, self.schedule)(stage, n_microbatches=MICRO_BATCHES, loss_fn=loss)
        return part

    def compile(self, part):
        return part

    def step(self):
        torch, (tokens, labels) = self.torch, self.inputs
        self.optimizer.zero_grad(set_to_none=True)
        losses = []
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            if self.rank:
                self.pipeline.step(target=labels, losses=losses)
            else:
                self.pipeline.step(tokens)
        self.clip()
        self.optimizer.step()
        return torch.stack(losses).mean().detach() if losses else torch.zeros(())

    def clip(self):
        torch = self.torch
        torch.distributed.all_reduce(self.table.grad)
        # The table once.
        own = [p.grad for p in self.model.parameters() if self.rank == 0 or p is not self.table]
        squares = torch.nn.utils.get_total_norm(own) ** 2
        torch.distributed.all_reduce(squares)
        scale = torch.clamp(models.TRAINING["clip"] / (torch.sqrt(squares) + 1e-6), max=1.0)
        torch._foreach_mul_([p.grad for p in self.model.parameters()], scale)

    def value(self, loss):
        self.torch.distributed.all_reduce(loss)
        return loss.item()


class PipelinedGpipe(Pipelined):
    schedule = "ScheduleGPipe"


class CompiledPipelined(Pipelined):
    def compile(self, part):
        return self.torch.compile(part)


PIPELINE = {"PyTorch 1F1B": Pipelined, "PyTorch GPipe": PipelinedGpipe, "PyTorch 1F1B compiled": CompiledPipelined}
