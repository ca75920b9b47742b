#!/usr/bin/env python3
"""Trains small random models of diffusers with acc and with PyTorch (trained.py says how), each with
the loss that it is trained with: times and noise are drawn in the module, and PyTorch's reference
draws the numbers that acc draws (python/tests/draws.py). Arguments name models, none all of them.

    pip install torch==2.14.1 diffusers==0.42.1 transformers==5.23.0 onnx==1.23.2 onnxscript==0.7.2"""
import sys

import diffusers
import torch
import torch.nn.functional as F

import trained

sys.path.insert(0, str(trained.ROOT / "python" / "tests"))

from draws import Draws  # noqa: E402

TIMES = 50
UNET = dict(sample_size=16, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8)
CODES = dict(in_channels=3, out_channels=3, down_block_types=("DownEncoderBlock2D",) * 2,
             up_block_types=("UpDecoderBlock2D",) * 2, block_out_channels=(16, 32), norm_num_groups=8,
             latent_channels=4)


class Denoise(torch.nn.Module):
    """Noise of a random time is to be found (Ho, Jain and Abbeel, arXiv:2006.11239)."""

    def __init__(self, model, find):
        super().__init__()
        self.model, self.find = model, find
        kept = diffusers.DDPMScheduler(num_train_timesteps=TIMES).alphas_cumprod
        self.register_buffer("kept", kept.clone())

    def forward(self, x, **condition):
        noise = torch.randn_like(x)
        time = torch.randint(0, TIMES, (x.shape[0],))
        kept = self.kept[time].view(-1, 1, 1, 1)
        found = self.find(self.model, kept.sqrt() * x + (1 - kept).sqrt() * noise, time, **condition)
        return F.mse_loss(found[:, :x.shape[1]], noise)


class Flow(torch.nn.Module):
    """The way from noise to data is to be found, at a time whose logit is normal (Esser et al.,
    arXiv:2403.03206)."""

    def __init__(self, model, find):
        super().__init__()
        self.model, self.find = model, find

    def forward(self, x, **condition):
        noise = torch.randn_like(x)
        time = torch.sigmoid(torch.randn(x.shape[0]))
        at = time.view(-1, *[1] * (x.dim() - 1))
        found = self.find(self.model, (1 - at) * x + at * noise, time, **condition)
        return F.mse_loss(found, noise - x)


class Autoencoder(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        codes = self.model.encode(x).latent_dist
        return F.mse_loss(self.model.decode(codes.sample()).sample, x) + 1e-3 * codes.kl().mean()


class Quantized(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        made = self.model(x)
        return F.mse_loss(made.sample, x) + made.commit_loss.mean()


def make_flux():
    model = diffusers.FluxTransformer2DModel(
        patch_size=1, in_channels=8, num_layers=1, num_single_layers=1, attention_head_dim=16,
        num_attention_heads=2, joint_attention_dim=24, pooled_projection_dim=12, axes_dims_rope=(4, 4, 8))
    places = torch.stack([torch.zeros(16), torch.arange(16) // 4, torch.arange(16) % 4], 1)

    def find(model, x, time, text, pooled):
        return model(hidden_states=x, timestep=time, encoder_hidden_states=text, pooled_projections=pooled,
                     img_ids=places.to(x), txt_ids=torch.zeros(text.shape[1], 3).to(x)).sample
    return Flow(model, find)


#: What makes a model with its loss, and the shapes of a sample's inputs.
MODELS = {
    "ddpm": (lambda: Denoise(diffusers.UNet2DModel(
        in_channels=3, out_channels=3, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8, **UNET),
        lambda model, x, time: model(x, time).sample), {"x": (3, 16, 16)}),
    "stable-diffusion": (lambda: Denoise(diffusers.UNet2DConditionModel(
        in_channels=4, out_channels=4, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=24, attention_head_dim=4,
        **UNET), lambda model, x, time, text: model(x, time, encoder_hidden_states=text).sample),
        {"x": (4, 16, 16), "text": (5, 24)}),
    "dit": (lambda: Denoise(diffusers.DiTTransformer2DModel(
        num_attention_heads=2, attention_head_dim=16, in_channels=4, out_channels=8, num_layers=2,
        sample_size=8, patch_size=2, num_embeds_ada_norm=100),
        lambda model, x, time, class_ids: model(x, time, class_labels=class_ids).sample),
        {"x": (4, 8, 8), "class_ids": ()}),
    "stable-diffusion-3": (lambda: Flow(diffusers.SD3Transformer2DModel(
        sample_size=8, patch_size=2, in_channels=4, num_layers=2, attention_head_dim=16,
        num_attention_heads=2, joint_attention_dim=24, caption_projection_dim=32,
        pooled_projection_dim=12, out_channels=4, pos_embed_max_size=8),
        lambda model, x, time, text, pooled: model(
            hidden_states=x, timestep=1000 * time, encoder_hidden_states=text,
            pooled_projections=pooled).sample), {"x": (4, 8, 8), "text": (5, 24), "pooled": (12,)}),
    "flux": (make_flux, {"x": (16, 8), "text": (5, 24), "pooled": (12,)}),
    "autoencoder-kl": (lambda: Autoencoder(diffusers.AutoencoderKL(**CODES)), {"x": (3, 16, 16)}),
    "vq": (lambda: Quantized(diffusers.VQModel(num_vq_embeddings=16, vq_embed_dim=4, **CODES)),
           {"x": (3, 16, 16)}),
}


def make(name):
    torch.manual_seed(5)
    construct, shapes = MODELS[name]
    model = construct()
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    return trained.prepare(model), trained.make_inputs(shapes)


if __name__ == "__main__":
    trained.main(__doc__, MODELS, make, Draws())
