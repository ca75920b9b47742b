"""The commands in docs/Recipes.md as they stand, of tiny models and in fewer steps, beside the
loops of the originals in PyTorch."""
import unittest

import numpy as np
import torch

import common  # noqa: F401 (finds the packages)

import words
from training import WITHOUT_TOOLS, TrainCase

try:
    import tokenizers  # noqa: F401
    import transformers
    import published_recipes
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    MISSING = WITHOUT_TOOLS
except ImportError:
    MISSING = "transformers is not installed here"

# Rates are greater than the page's, so that few steps show what no_decay and groups leave out.
CLOSE = 5e-6
FEWER = {"total_steps=240": "total_steps=12", "--steps 240": "--steps 12",
         "--eval-every 40": "--eval-every 6"}


@unittest.skipIf(MISSING, MISSING)
class Documented(TrainCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(1)
        self.texts = [text for text, _ in words.sentences(60, 1)]

    def check(self, make, source, **changes):
        """Both layouts have PyTorch's losses and evaluations, and there are some of each."""
        recipe = type(make.__name__, (make,), changes)(self.folder)
        recipe.write(source)
        curves = recipe.by_acc()
        right = recipe.by_torch()
        self.assertEqual(len(curves), 2)
        for layout, found in curves.items():
            with self.subTest(layout):
                np.testing.assert_allclose(found["losses"], right["losses"], rtol=CLOSE)
                self.assertGreater(len(right["evaluations"]), 1)
                self.assertEqual(list(found["evaluations"]), list(right["evaluations"]))
                np.testing.assert_allclose(list(found["evaluations"].values()),
                                           list(right["evaluations"].values()), rtol=CLOSE)
        first = next(iter(curves.values()))
        np.testing.assert_allclose(list(first["accuracies"].values()),
                                   list(right["accuracies"].values()), rtol=1e-6)
        [saved] = self.folder.glob(f"{next(iter(recipe.programs.values()))}.safetensors")
        self.assertGreater(saved.stat().st_size, 0)

    def test_nanogpt(self):
        self.check(published_recipes.NanoGPT, self.texts, batch=20, edits={
            **FEWER, "= 3, 3, 96, 32, 120": "= 1, 2, 8, 8, 20", "warmup_steps=19": "warmup_steps=4",
            "optimizer.lr=6e-4": "optimizer.lr=6e-3", "warmup_min_lr=3e-5": "warmup_min_lr=1.2e-3"})

    def test_bert(self):
        rows = [(text, published_recipes.Bert.classes[len(text) % 4]) for text in self.texts]
        self.check(published_recipes.Bert, rows, rows=48, make_folder=make_bert, edits={
            "420": "6", "1260": "18", "126": "2", "--sequence 64": "--sequence 12",
            "optimizer.lr=5e-5": "optimizer.lr=5e-3"})

    def test_llama(self):
        self.check(published_recipes.Llama, self.texts, vocabulary=270, batch=4, length=8, sizes={
            "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
            "num_attention_heads": 4, "num_key_value_heads": 2}, edits={
                **FEWER, "--sequence 64 --batch 16": "--sequence 8 --batch 4",
                "warmup_steps=24": "warmup_steps=3", "optimizer.lr=1.5e-4": "optimizer.lr=1.5e-3"})


def make_bert(recipe):
    """Not pre-trained."""
    words.save_tokenizer(recipe.folder / "bert")
    transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=64, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=32, num_labels=4)).save_pretrained(
            recipe.folder / "bert")


if __name__ == "__main__":
    unittest.main()
