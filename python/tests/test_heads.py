"""Some heads for tasks of `transformers`, each by a default export, by one with optimize=False
and by acc-export, trained as PyTorch does in float64 on one rank and on two with micro-batches:
a slice of test/PyTorch/check_architectures.py, which tries every head of many families. And one
of which a default export does not tell enough. Needs the tools."""
import pathlib
import sys
import unittest

from common import ExportCase
from training import TOOLS, WITHOUT_TOOLS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test" / "PyTorch"))
import check_architectures  # noqa: E402
import heads  # noqa: E402


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Heads(ExportCase):
    def check(self, name, way):
        return check_architectures.check_head(name, way, TOOLS, self.folder)

    def assert_trained(self, name, way):
        loss, parameter, _ = self.check(name, way)
        self.assertLess(loss, 1e-9)
        self.assertLess(parameter, 1e-6)

    def test_tokens_by_default(self):
        self.assert_trained("distilbert:tokens", "default")

    def test_tokens(self):
        self.assert_trained("distilbert:tokens", "raw")

    def test_tokens_by_acc_export(self):
        self.assert_trained("distilbert:tokens", "acc-export")

    def test_a_tied_head_by_default(self):
        self.assert_trained("gpt2:causal", "default")

    def test_norms_and_groups_by_acc_export(self):
        self.assert_trained("llama:one class", "acc-export")

    def test_an_encoder_and_a_decoder(self):
        self.assert_trained("t5:conditional", "raw")

    def test_a_value_that_may_have_been_detached_is_refused(self):
        self.assertIsNone(self.check("bert:both", "default"))
        self.assertIn("bert:both", heads.NOT_TOLD)


if __name__ == "__main__":
    unittest.main()
