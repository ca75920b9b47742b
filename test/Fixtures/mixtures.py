"""Decoders of our own with mixtures of experts that no library writes so: what
make_experts.py exports beside Hugging Face's. Each mixture takes [batch, tokens, width]."""
import torch
import torch.nn.functional as F

WORDS, WIDTH, HEADS, LAYERS, EXPERTS, HIDDEN = 64, 16, 4, 2, 8, 8


def matrices(*shape):
    return torch.nn.Parameter(torch.empty(*shape))


class Sigmoid(torch.nn.Module):
    """DeepSeek-V3's: sigmoid scores; a bias, which nothing trains, takes part in choosing
    and not in weighing; the chosen scores normalised and scaled; a shared expert."""

    def __init__(self, chosen=2, scale=1.5):
        super().__init__()
        self.chosen, self.scale = chosen, scale
        self.gate = torch.nn.Linear(WIDTH, EXPERTS, bias=False)
        self.register_buffer("correction", 0.5 * torch.sin(2.5 * torch.arange(EXPERTS) + 1))
        self.gate_up, self.down = matrices(EXPERTS, 2 * HIDDEN, WIDTH), matrices(EXPERTS, WIDTH, HIDDEN)
        self.shared = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, HIDDEN), torch.nn.SiLU(), torch.nn.Linear(HIDDEN, WIDTH))
        self.is_corrected = True

    def forward(self, x):
        rows = x.reshape(-1, WIDTH)
        scores = self.gate(rows).sigmoid()
        wanted = scores + self.correction if self.is_corrected else scores
        places = torch.topk(wanted.detach(), self.chosen, dim=-1).indices
        weights = scores.gather(-1, places)
        weights = self.scale * weights / (weights.sum(-1, keepdim=True) + 1e-20)
        each = rows.repeat_interleave(self.chosen, 0).unsqueeze(-1)
        index = places.reshape(-1)
        gate, up = torch.bmm(self.gate_up[index], each).squeeze(-1).chunk(2, -1)
        out = torch.bmm(self.down[index], (F.silu(gate) * up).unsqueeze(-1)).squeeze(-1)
        out = (out * weights.reshape(-1, 1)).reshape(-1, self.chosen, WIDTH).sum(1)
        return (out + self.shared(rows)).reshape(x.shape)


class Capacity(torch.nn.Module):
    """GShard's and Switch's: of each sample an expert takes so many tokens, in their
    order; what comes later is dropped. Tokens go there and back by products with masks."""

    def __init__(self, chosen=2, places=2):
        super().__init__()
        self.chosen, self.places = chosen, places
        self.gate = torch.nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up, self.down = matrices(EXPERTS, WIDTH, HIDDEN), matrices(EXPERTS, HIDDEN, WIDTH)
        self.is_last_first = False
        self.dropped = None

    def positions(self, mask):
        """Of each choice the number of those of the same expert before it, first choices
        of all tokens before second ones (GShard); [batch, choices, tokens, experts]."""
        batch, choices, tokens, experts = mask.shape
        flat = mask.reshape(batch, choices * tokens, experts)
        if self.is_last_first:
            flat = flat.flip(1).cumsum(1).flip(1)
        else:
            flat = flat.cumsum(1)
        return flat.reshape(mask.shape) - 1

    def forward(self, x):
        scores = self.gate(x).softmax(-1)
        weights, index = torch.topk(scores, self.chosen, dim=-1)
        mask = F.one_hot(index, EXPERTS).transpose(1, 2)          # [b, k, s, e]
        position = self.positions(mask)
        kept = mask * (position < self.places)
        self.dropped = mask.sum() - kept.sum()
        places = F.one_hot(position.clamp(0, self.places - 1), self.places)
        places = (places * kept.unsqueeze(-1)).to(x.dtype)        # [b, k, s, e, c]
        combine = (places * weights.transpose(1, 2)[..., None, None]).sum(1)
        slots = (x.shape[0], x.shape[1], EXPERTS * self.places)
        dispatch, combine = places.sum(1).reshape(slots), combine.reshape(slots)
        given = dispatch.transpose(1, 2) @ x                      # [b, e * c, width]
        given = given.reshape(-1, EXPERTS, self.places, WIDTH).transpose(0, 1)
        hidden = F.gelu(torch.bmm(given.reshape(EXPERTS, -1, WIDTH), self.up))
        out = torch.bmm(hidden, self.down).reshape(EXPERTS, -1, self.places, WIDTH)
        return combine @ out.transpose(0, 1).reshape(-1, EXPERTS * self.places, WIDTH)


class Loop(torch.nn.Module):
    """Experts that are modules: each computes every token, and counts where it is chosen."""

    def __init__(self, chosen=2, experts=4):
        super().__init__()
        self.chosen = chosen
        self.gate = torch.nn.Linear(WIDTH, experts)
        self.experts = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(WIDTH, HIDDEN), torch.nn.GELU(),
                                torch.nn.Linear(HIDDEN, WIDTH)) for _ in range(experts))

    def forward(self, x):
        weights, index = torch.topk(self.gate(x), self.chosen, dim=-1)
        weights = weights.softmax(-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            weight = (weights * (index == number)).sum(-1, keepdim=True)
            out = out + expert(x) * weight
        return out


class Gathered(torch.nn.Module):
    """Experts that get the tokens that chose them: as many as there happen to be, found in a
    table of choices, and added to the tokens' sums: of each expert the first, first choices
    before second ones, where `places` says how many. Each is a gated perceptron."""

    def __init__(self, chosen=2, experts=4, places=None):
        super().__init__()
        self.chosen, self.places = chosen, places
        self.router = torch.nn.Linear(WIDTH, experts, bias=False)
        self.w1, self.w2, self.w3 = (
            torch.nn.ModuleList(torch.nn.Linear(*sizes) for _ in range(experts))
            for sizes in ((WIDTH, HIDDEN), (HIDDEN, WIDTH), (WIDTH, HIDDEN)))

    def forward(self, x):
        rows = x.reshape(-1, WIDTH)
        weights, index = torch.topk(self.router(rows).softmax(-1), self.chosen, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        table = F.one_hot(index, len(self.w1)).permute(2, 1, 0)
        out = torch.zeros_like(rows)
        for number, (w1, w2, w3) in enumerate(zip(self.w1, self.w2, self.w3)):
            choice, token = torch.where(table[number])
            if self.places:
                choice, token = choice[:self.places], token[:self.places]
            mine = rows[token]
            mine = w2(F.silu(w1(mine)) * w3(mine)) * weights[token, choice, None]
            out = out.index_add(0, token, mine)
        return out.reshape(x.shape)


class Layer(torch.nn.Module):
    def __init__(self, mixture):
        super().__init__()
        self.norm_1, self.norm_2 = torch.nn.RMSNorm(WIDTH), torch.nn.RMSNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.mixture = mixture

    def forward(self, x):
        heads = [part.reshape(*part.shape[:2], HEADS, -1).transpose(1, 2)
                 for part in self.qkv(self.norm_1(x)).chunk(3, -1)]
        attention = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(attention.transpose(1, 2).reshape(x.shape))
        return x + self.mixture(self.norm_2(x))


class Decoder(torch.nn.Module):
    """Words to the mean loss of the next ones."""

    def __init__(self, mixture):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.layers = torch.nn.ModuleList(Layer(mixture()) for _ in range(LAYERS))
        self.norm = torch.nn.RMSNorm(WIDTH)
        self.head = torch.nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, input_ids, labels):
        x = self.words(input_ids)
        for layer in self.layers:
            x = layer(x)
        labels = F.pad(labels, (0, 1), value=-100)[:, 1:]
        return F.cross_entropy(self.head(self.norm(x)).reshape(-1, WORDS), labels.reshape(-1))


def sigmoid():
    return Decoder(Sigmoid)


def capacity():
    return Decoder(Capacity)


def loop():
    return Decoder(Loop)


def gathered():
    return Decoder(Gathered)


def limited():
    return Decoder(lambda: Gathered(places=20))


class Norm(torch.nn.RMSNorm):
    """By its formula, since the TorchScript exporter knows no rms_norm."""

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * self.weight


def traced():
    decoder = Decoder(Gathered)
    decoder.norm = Norm(WIDTH)
    for layer in decoder.layers:
        layer.norm_1, layer.norm_2 = Norm(WIDTH), Norm(WIDTH)
    return decoder


def check(module, inputs):
    """That what makes a mixture special matters to the loss: raises AssertionError if not."""
    def change(kind, name, value):
        for part in module.modules():
            if isinstance(part, kind):
                setattr(part, name, value)
        return module(**inputs).item()

    with torch.no_grad():
        loss = module(**inputs).item()
        for kind, name, usual in ((Sigmoid, "is_corrected", True), (Capacity, "is_last_first", False)):
            if any(isinstance(part, kind) for part in module.modules()):
                other = change(kind, name, not usual)
                assert abs(other - loss) > 1e-3 * loss, (name, loss, other)
                assert change(kind, name, usual) == loss
        for part in module.modules():
            if isinstance(part, Capacity):
                assert part.dropped > 0, "no token is dropped"
                part.dropped = None
