"""Weight decay that leaves parameters out, as PyTorch's groups do in float64: by patterns,
and by the files of Megatron-LM, in layouts that shard, split, pad and stack what is left
out. Needs the tools, whose folder ACC_BIN names."""
import copy
import json
import unittest

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from training import WITHOUT_TOOLS, TrainCase

STEPS = 4
RATE, DECAY = 2.0 ** -6, 0.5


class Expert(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 12), torch.nn.Linear(12, 8)

    def forward(self, x):
        return self.down(F.silu(self.up(x)))


class Net(torch.nn.Module):
    """A tied table, norms (of queries and keys too), biases of one and of two dimensions,
    a scalar, and experts that the compiler stacks."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.table = torch.nn.Embedding(13, 8)
        self.norm, self.q_norm = torch.nn.LayerNorm(8), torch.nn.LayerNorm(4)
        self.q, self.k = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8, bias=False)
        self.scale = torch.nn.Parameter(torch.tensor(0.75))
        self.place = torch.nn.Module()
        self.place.bias = torch.nn.Parameter(torch.randn(5, 8))
        self.gate = torch.nn.Linear(8, 3, bias=False)
        self.experts = torch.nn.ModuleList(Expert() for _ in range(3))
        self.head = torch.nn.Linear(8, 13, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids, labels):
        x = self.table(ids) + self.place.bias
        n = self.norm(x)
        q, k = (f(n).view(-1, 5, 2, 4).transpose(1, 2) for f in (self.q, self.k))
        y = F.scaled_dot_product_attention(self.q_norm(q), k, k, is_causal=True)
        x = x + self.scale * y.transpose(1, 2).reshape(-1, 5, 8)
        weights, chosen = self.gate(x).softmax(-1).topk(2)
        z = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            z = z + (weights * (chosen == i)).sum(-1, keepdim=True) * expert(x)
        x = x + z
        return F.cross_entropy(self.head(x).reshape(-1, 13), labels.reshape(-1))


class Shapes(torch.nn.Module):
    """What goes by the shape or by the name alone: matrices of one row and of one column, a bias
    of three dimensions, a table called `bias_table`, weights of one dimension and of three, and
    norms of keys whose bias counts too. One parameter is frozen."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.table = torch.nn.Embedding(13, 8)
        self.row = torch.nn.Parameter(torch.randn(1, 8))
        self.column = torch.nn.Linear(8, 1)
        self.bias_table = torch.nn.Parameter(torch.randn(5, 8))
        self.heads = torch.nn.Module()
        self.heads.bias = torch.nn.Parameter(torch.randn(2, 1, 4))
        self.weights = torch.nn.Parameter(torch.rand(8))
        self.k_layernorm = torch.nn.LayerNorm(4)
        self.mix = torch.nn.Parameter(torch.randn(2, 4, 4))
        self.slope = torch.nn.PReLU()
        self.still = torch.nn.Linear(8, 8)
        self.still.requires_grad_(False)

    def forward(self, ids, labels):
        x = (self.table(ids) + self.bias_table) * self.row
        k = x.view(-1, 5, 2, 4).transpose(1, 2) + self.heads.bias
        x = (self.k_layernorm(k) @ self.mix).transpose(1, 2).reshape(-1, 5, 8) * self.weights
        x = self.slope(x)
        x = self.still(x) * torch.sigmoid(self.column(x))
        return F.cross_entropy((x @ self.table.weight.t()).reshape(-1, 13), labels.reshape(-1))


def is_vector(name, parameter):
    return parameter.dim() == 1 or name.endswith(".bias")


def adamw(groups):
    return torch.optim.AdamW(groups, lr=RATE, weight_decay=DECAY)


def sgd(groups):
    return torch.optim.SGD(groups, lr=RATE, weight_decay=DECAY, momentum=0.9)


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Decay(TrainCase):
    def setUp(self):
        super().setUp()
        generator = torch.Generator().manual_seed(4)
        self.batch = [torch.randint(0, 13, (4, 5), generator=generator) for _ in range(2)]
        self.begin(Net())

    def begin(self, module):
        self.module = module
        self.export(module, tuple(self.batch))

    def right(self, make, is_left_out):
        module = copy.deepcopy(self.module).double()
        groups = [[p for n, p in module.named_parameters()
                   if p.requires_grad and is_left_out(n, p) == left]
                  for left in (False, True)]
        optimizer = make([{"params": groups[0]}, {"params": groups[1], "weight_decay": 0.0}])
        losses = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = module(*self.batch)
            losses.append(loss.item())
            loss.backward()
            optimizer.step()
        return losses, module

    def assert_decayed(self, flags, make, is_left_out):
        program, saved = self.folder / "m.accx", self.folder / "w.safetensors"
        self.tool("acc-opt", self.folder / "model.onnx", "--train", "--loss", "loss",
                  "--dtype=f64", "--entries=step", *flags, "-o", program)
        lines = self.tool("acc-run", program, "--steps", STEPS, "--inputs",
                          self.folder / "inputs", "--json", "--save-weights", saved).splitlines()
        found = [json.loads(line)["loss"] for line in lines if '"loss"' in line]
        losses, module = self.right(make, is_left_out)
        torch.testing.assert_close(found, losses, rtol=1e-6, atol=0)
        weights = load_file(saved)
        for name, parameter in module.named_parameters():
            torch.testing.assert_close(weights[name].double(), parameter.detach(), rtol=1e-6,
                                       atol=1e-6, msg=lambda text, name=name: f"{name}: {text}")

    def megatron(self, more=""):
        return ["--config", f"--lr {RATE} --weight-decay {DECAY} --clip-grad 0 {more}"]

    def test_arguments_of_megatron(self):
        self.assert_decayed([*self.megatron(), "--set", "num_processes=1"], adamw, is_vector)

    def test_split_and_sharded(self):
        flags = self.megatron("--tensor-model-parallel-size 2 --micro-batch-size 1 "
                              "--global-batch-size 4 --data-parallel-sharding-strategy "
                              "optim_grads_params")
        self.assert_decayed([*flags, "--mesh", "dp=2,tp=2"], adamw, is_vector)

    def test_norms_of_queries(self):
        flags = self.megatron("--apply-wd-to-qk-layernorm --optimizer sgd")
        self.assert_decayed([*flags, "--mesh", "dp=2"], sgd,
                            lambda n, p: is_vector(n, p) and "q_norm." not in n)

    def test_experts_apart_and_moments_sharded(self):
        flags = self.megatron("--expert-model-parallel-size 3 --micro-batch-size 1 "
                              "--global-batch-size 12 --use-distributed-optimizer")
        self.batch = [torch.cat([x] * 3) for x in self.batch]
        self.begin(Net())
        self.assert_decayed([*flags, "--set", "num_processes=3"], adamw, is_vector)

    def test_shapes_and_names(self):
        self.begin(Shapes())
        flags = self.megatron("--micro-batch-size 2 --global-batch-size 4 "
                              "--data-parallel-sharding-strategy optim_grads_params")
        self.assert_decayed([*flags, "--mesh", "dp=2"], adamw, is_vector)

    def test_the_other_name_of_the_norms_of_keys(self):
        self.begin(Shapes())
        flags = self.megatron("--no-weight-decay-cond-type qwen3_next --micro-batch-size 2 "
                              "--global-batch-size 4 --tensor-model-parallel-size 2")
        self.assert_decayed([*flags, "--mesh", "tp=2"], adamw,
                            lambda n, p: is_vector(n, p) and "k_layernorm." not in n)

    def test_without_momentum_and_in_stages(self):
        flags = self.megatron("--optimizer sgd --sgd-momentum 0")
        self.assert_decayed([*flags, "--mesh", "pp=2", "--micro-batches", "2"],
                            lambda g: torch.optim.SGD(g, lr=RATE, weight_decay=DECAY), is_vector)

    def test_accelerate_and_stages(self):
        file = self.folder / "run.yaml"
        file.write_text("distributed_type: MEGATRON_LM\nnum_processes: 2\nmegatron_lm_config: "
                        "{megatron_lm_pp_degree: 2, megatron_lm_gradient_clipping: 0, "
                        "megatron_lm_num_micro_batches: 2}\n")
        self.assert_decayed(["--config", file, "--set", f"optimizer.lr={RATE}", "--set",
                             f"optimizer.weight_decay={DECAY}"], adamw, is_vector)

    def test_patterns(self):
        self.assert_decayed(["--mesh", "dp_shard=2,tp=2", "--set", "zero_stage=2", "--set",
                             f"optimizer.lr={RATE}", "--set", f"optimizer.weight_decay={DECAY}",
                             "--set", "optimizer.no_decay=head.*,experts.*.up.*,*norm.weight"],
                            adamw, lambda n, p: n.startswith("table") or ".up." in n
                            or n.endswith("norm.weight"))

    def test_others_decay_all(self):
        file = self.folder / "ds.json"
        file.write_text(json.dumps({
            "optimizer": {"type": "AdamW", "params": {"lr": RATE, "weight_decay": DECAY}},
            "zero_optimization": {"stage": 3}, "gradient_clipping": 0}))
        self.assert_decayed(["--config", file, "--mesh", "dp=2"], adamw, lambda n, p: False)


if __name__ == "__main__":
    unittest.main()
