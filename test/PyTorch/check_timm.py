#!/usr/bin/env python3
"""Trains small random models of many families of timm and torchvision with acc and with PyTorch
(trained.py says how), and compares: the smallest of each family, at small pictures, and narrower and
shallower where its constructor lets it be. Arguments name models, none all of them. timm needs
torchvision, which goes with PyTorch's own wheels of the same release alone, so that these are not of
test/Fixtures/requirements.txt:

    pip install torch==2.14.1 torchvision==0.29.1 timm==1.0.31 onnx==1.23.2 onnxscript==0.7.2"""
import timm
import torch
import torchvision

import trained

#: Sizes that Vision Transformers of one width take.
VIT = dict(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4)
#: And those in stages.
STAGES = dict(depths=(1, 1, 1, 1))

#: The side of a picture, and arguments, by the name of a model of timm.
MODELS = {
    "beit_base_patch16_224": (32, VIT),
    "cait_xxs24_224": (32, VIT),
    "coat_lite_tiny": (64, dict(img_size=64, serial_depths=(1, 1, 1, 1))),
    "convit_tiny": (32, VIT),
    "convnext_atto": (64, STAGES),
    "convnextv2_atto": (64, STAGES),
    "crossvit_9_240": (240, {}),
    "cs3darknet_focus_s": (64, {}),
    "davit_tiny": (64, dict(depths=(1, 1), embed_dims=(16, 32), num_heads=(2, 4))),
    "deit_tiny_distilled_patch16_224": (32, VIT),
    "deit3_small_patch16_224": (32, VIT),
    "densenet121": (64, dict(block_config=(2, 2), growth_rate=8)),
    "dla46_c": (64, {}),
    "dpn48b": (64, {}),
    "edgenext_xx_small": (64, dict(depths=(1, 1, 1, 1))),
    "efficientformerv2_s0": (64, dict(img_size=64)),
    "efficientnet_lite0": (64, {}),
    "efficientnetv2_rw_t": (64, {}),
    "efficientvit_b0": (64, {}),
    "efficientvit_m0": (64, dict(img_size=64)),
    "eva02_tiny_patch14_224": (28, dict(img_size=28, embed_dim=48, depth=2, num_heads=4)),
    "fasternet_t0": (64, {}),
    "fastvit_t8": (64, {}),
    "gernet_s": (64, {}),
    "ghostnet_050": (64, {}),
    "hgnetv2_b0": (64, {}),
    "hiera_tiny_224": (64, dict(img_size=64, embed_dim=16, num_heads=1, stages=(1, 1, 1, 1))),
    "hrnet_w18_small": (64, {}),
    "inception_next_atto": (64, STAGES),
    "lambda_resnet26t": (64, {}),
    "lcnet_035": (64, {}),
    "levit_128s": (64, dict(img_size=64)),
    "mambaout_femto": (64, STAGES),
    "mobilenetv3_small_050": (64, {}),
    "mobilenetv4_conv_small_035": (64, {}),
    "mobileone_s0": (64, {}),
    "mobilevit_xxs": (64, {}),
    "mobilevitv2_050": (64, {}),
    "mnasnet_small": (64, {}),
    "nf_regnet_b0": (64, {}),
    "pit_ti_224": (64, dict(img_size=64)),
    "pvt_v2_b0": (64, dict(depths=(1, 1, 1, 1), embed_dims=(16, 16, 32, 32), num_heads=(1, 2, 2, 4))),
    "regnetx_002": (64, {}),
    "regnety_002": (64, {}),
    "repghostnet_050": (64, {}),
    "repvit_m0_9": (64, {}),
    "res2net50_14w_8s": (64, dict(layers=(1, 1, 1, 1))),
    "resnest14d": (64, {}),
    "resnet10t": (64, {}),
    "resnetv2_18": (64, {}),
    "rexnet_100": (64, dict(width_mult=0.5)),
    "samvit_base_patch16": (32, dict(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4,
                                     window_size=3, global_attn_indexes=(1,), neck_chans=16)),
    "selecsls42b": (64, {}),
    "sequencer2d_s": (56, dict(img_size=56, layers=(1, 1, 1, 1), embed_dims=(32, 32, 32, 32),
                               hidden_sizes=(8, 16, 16, 16))),
    "skresnet18": (64, dict(layers=(1, 1, 1, 1))),
    "starnet_s050": (64, {}),
    "swin_tiny_patch4_window7_224": (32, dict(img_size=32, window_size=4, embed_dim=16, depths=(2, 2),
                                              num_heads=(2, 4))),
    "swinv2_tiny_window8_256": (32, dict(img_size=32, window_size=4, embed_dim=16, depths=(2, 2),
                                         num_heads=(2, 4))),
    "swinv2_cr_tiny_224": (32, dict(img_size=32, window_size=4, embed_dim=16, depths=(2, 2),
                                    num_heads=(2, 4))),
    "tresnet_m": (64, dict(layers=(1, 1, 1, 1))),
    "twins_svt_small": (64, dict(img_size=64, depths=(1, 1, 1, 1), embed_dims=(16, 32, 32, 64),
                                 num_heads=(1, 2, 2, 4))),
    "visformer_tiny": (64, dict(img_size=64)),
    "vit_tiny_patch16_224": (32, VIT),
    "vit_relpos_small_patch16_224": (32, VIT),
    "vit_tiny_r_s16_p8_224": (64, dict(img_size=64, embed_dim=32, depth=2, num_heads=4)),
    "ese_vovnet19b_slim": (64, {}),
    "xcit_nano_12_p16_224": (32, dict(img_size=32, depth=2, embed_dim=32, num_heads=4)),
    "xception41": (64, {}),
}

def test_model(name):
    """One of timm's own small ones, for its tests."""
    return lambda: timm.create_model(f"test_{name}", num_classes=7)


#: Others, and those of torchvision: what makes one, and the shape of a sample.
OTHERS = {
    "convmixer": (lambda: timm.models.convmixer.ConvMixer(32, 2, num_classes=7), (3, 28, 28)),
    "coatnet": (test_model("coatnet"), (3, 160, 160)),
    "focalnet": (lambda: timm.models.focalnet.FocalNet(embed_dim=16, depths=(1, 1), num_classes=7),
                 (3, 32, 32)),
    "gmlp": (lambda: timm.models.mlp_mixer.MlpMixer(
        7, 32, patch_size=8, num_blocks=2, embed_dim=32, mlp_ratio=4,
        block_layer=timm.models.mlp_mixer.SpatialGatingBlock, mlp_layer=timm.layers.GatedMlp),
        (3, 32, 32)),
    "maxvit": (test_model("maxvit"), (3, 160, 160)),
    "mixer": (lambda: timm.models.mlp_mixer.MlpMixer(7, 32, patch_size=8, num_blocks=2, embed_dim=32),
              (3, 32, 32)),
    "poolformer": (lambda: timm.models.metaformer.MetaFormer(
        depths=(1, 1), dims=(16, 32), token_mixers=timm.models.metaformer.Pooling, num_classes=7),
        (3, 64, 64)),
    "convformer": (lambda: timm.models.metaformer.MetaFormer(
        depths=(1, 1), dims=(16, 32), token_mixers=timm.models.metaformer.SepConv, num_classes=7),
        (3, 64, 64)),
    "resmlp": (lambda: timm.models.mlp_mixer.MlpMixer(
        7, 32, patch_size=8, num_blocks=2, embed_dim=32, mlp_ratio=4,
        block_layer=timm.models.mlp_mixer.ResBlock, norm_layer=timm.models.mlp_mixer.Affine),
        (3, 32, 32)),
    "tiny_vit": (lambda: timm.models.tiny_vit.TinyVit(
        num_classes=7, embed_dims=(16, 32, 32, 64), depths=(1, 1, 1, 1), num_heads=(1, 2, 2, 4),
        window_sizes=(4, 4, 4, 4)), (3, 64, 64)),
    "tnt": (lambda: timm.models.tnt.TNT(32, 8, embed_dim=32, inner_dim=8, depth=2, num_heads_inner=2,
                                        num_heads_outer=4, num_classes=7), (3, 32, 32)),
    "vit_test": (test_model("vit"), (3, 160, 160)),
    "torchvision:googlenet": (lambda: torchvision.models.googlenet(
        init_weights=False, aux_logits=False), (3, 64, 64)),
    "torchvision:shufflenet_v2": (torchvision.models.shufflenet_v2_x0_5, (3, 64, 64)),
    "torchvision:squeezenet": (torchvision.models.squeezenet1_1, (3, 64, 64)),
    "torchvision:mobilenet_v2": (torchvision.models.mobilenet_v2, (3, 64, 64)),
    "torchvision:vit": (lambda: torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64), (3, 32, 32)),
    "torchvision:swin_v2": (lambda: torchvision.models.SwinTransformer(
        [4, 4], 16, [2, 2], [2, 4], [4, 4], block=torchvision.models.swin_transformer.SwinTransformerBlockV2,
        downsample_layer=torchvision.models.swin_transformer.PatchMergingV2), (3, 32, 32)),
    "torchvision:deeplabv3": (lambda: torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(
        weights_backbone=None, num_classes=5), (3, 64, 64)),
    "torchvision:lraspp": (lambda: torchvision.models.segmentation.lraspp_mobilenet_v3_large(
        weights_backbone=None, num_classes=5), (3, 64, 64)),
    "torchvision:r3d": (lambda: torchvision.models.video.resnet.VideoResNet(
        torchvision.models.video.resnet.BasicBlock, [torchvision.models.video.resnet.Conv3DSimple] * 4,
        [1, 1, 1, 1], torchvision.models.video.resnet.BasicStem, num_classes=7), (3, 4, 32, 32)),
}


def make(name):
    torch.manual_seed(5)
    if name in OTHERS:
        construct, shape = OTHERS[name]
        model = construct()
    else:
        side, arguments = MODELS[name]
        model, shape = timm.create_model(name, num_classes=7, **arguments), (3, side, side)
    for part in model.modules():
        if isinstance(part, (torch.nn.Dropout, torch.nn.Dropout2d, torch.nn.Dropout3d,
                             torchvision.ops.StochasticDepth)):
            part.p = 0.0
        for rate in ("drop_prob", "drop_rate"):  # of F.dropout, whose draws are PyTorch's
            if hasattr(part, rate):
                setattr(part, rate, 0.0)
    return trained.prepare(model, by_name=False), trained.make_inputs({"x": shape})


if __name__ == "__main__":
    trained.main(__doc__, MODELS | OTHERS, make)
