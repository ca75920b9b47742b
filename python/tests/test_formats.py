"""Casts between formats, by compiled kernels and by the evaluator, beside ml_dtypes: of all codes
of 4, 6, 8 and 16 bits, of ten million f32 and a million f64 of all magnitudes; with and without
saturation. ml_dtypes rounds f64 twice, by way of f32: those are held against the nearest of all
numbers of the format. Needs the tools, whose folder ACC_BIN names."""
import unittest

import ml_dtypes
import numpy as np

from training import WITHOUT_TOOLS, TrainCase

NARROW = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
          "f8E5M2": ml_dtypes.float8_e5m2, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
          "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
          "f6E2M3FN": ml_dtypes.float6_e2m3fn, "f6E3M2FN": ml_dtypes.float6_e3m2fn,
          "f4E2M1FN": ml_dtypes.float4_e2m1fn}
#: Have no NaN: ml_dtypes has a zero for it, whose sign says nothing.
WITHOUT_NAN = ("f6E2M3FN", "f6E3M2FN", "f4E2M1FN")
WIDE = {"f32": np.float32, "f64": np.float64}


def all_codes(dtype):
    bits = ml_dtypes.finfo(dtype).bits
    return np.arange(2 ** bits, dtype=f"u{np.dtype(dtype).itemsize}").view(dtype)


def drawn(dtype, count):
    """Numbers of all codes of f32 or f64, and those next to a tie of a narrower format."""
    size = np.dtype(dtype).itemsize
    some = np.random.default_rng(3).integers(0, 256, count * size, np.uint8).view(dtype)
    ties = [one.astype(np.float64) for one in map(all_codes, NARROW.values())]
    middles = []
    for numbers in ties:
        finite = np.unique(numbers[np.isfinite(numbers)])
        middles.append((finite[1:] + finite[:-1]) / 2)
    near = np.concatenate(middles).astype(dtype)
    return np.concatenate([some, near, np.nextafter(near, dtype(np.inf)),
                           np.nextafter(near, dtype(-np.inf))])


def nearest_power(values):
    """The nearest power of two from 2^-127 to 2^127, of two the larger; of all else NaN."""
    fraction, exponent = np.frexp(values)
    power = np.ldexp(1.0, np.where(fraction < 0.75, exponent - 1, exponent))
    power = np.where((values > 0) & np.isfinite(values), np.maximum(power, 2.0 ** -127), np.nan)
    return np.where(power > 2.0 ** 127, np.nan, power).astype(np.float32)


def nearest(values, dtype):
    """f64 rounded once: the nearest of all numbers, of two the one whose code is even."""
    if dtype == NARROW["f8E8M0FNU"]:
        return nearest_power(values)
    numbers = all_codes(dtype).astype(np.float64)
    finite, codes = np.unique(np.abs(numbers[np.isfinite(numbers)]), return_index=True)
    top = finite[-1] + (finite[-1] - finite[-2]) / 2
    size = np.where(np.isnan(values), 0, np.abs(values))
    above = np.clip(np.searchsorted(finite, size), 1, len(finite) - 1)
    low, high = finite[above - 1], finite[above]
    # Codes of magnitudes follow their order.
    even = np.where((above - 1) % 2 == 0, low, high)
    middle = (low + high) / 2
    found = np.where(size < middle, low, np.where(size > middle, high, even))
    beyond = np.array([np.inf]).astype(dtype).astype(np.float64)[0]
    isEven = (len(finite) - 1) % 2 == 0
    found = np.where((size > top) | ((size == top) & (not isEven)), beyond, found)
    found = np.where(np.isnan(values), np.nan, np.copysign(found, values)).astype(np.float32)
    return found + np.float32(0) if "uz" in np.dtype(dtype).name else found  # one zero


@unittest.skipIf(WITHOUT_TOOLS, WITHOUT_TOOLS)
class Formats(TrainCase):
    def cast(self, values, source, target, saturate, by):
        """f64 values as `source`, cast to `target`: as f32, which holds all of it."""
        count, wide = len(values), "f64" if source == "f64" else "f32"
        words = " {saturate}" if saturate else ""
        first = (f"%a = nn.cast %x : (tensor<{count}x{wide}>) -> tensor<{count}x{source}>"
                 if source != wide else "")
        program = self.folder / "m.mlir"
        program.write_text(f"""module attributes {{accel.phase = "nn"}} {{
  func.func @main(%x: tensor<{count}x{wide}> {{nn.input = "x"}})
      -> (tensor<{count}xf32> {{nn.output = "y"}}) attributes {{nn.entry}} {{
    {first}
    %b = nn.cast {"%a" if first else "%x"}{words} : (tensor<{count}x{source}>) -> tensor<{count}x{target}>
    %y = nn.cast %b : (tensor<{count}x{target}>) -> tensor<{count}xf32>
    return %y : tensor<{count}xf32>
  }}
}}""")
        inputs, outputs = self.folder / "in", self.folder / "out"
        inputs.mkdir(exist_ok=True)
        np.save(inputs / "x.npy", values.astype(WIDE[wide]))
        if by == "acc-run":
            executable = self.folder / "m.accx"
            self.tool("acc-opt", program, "-o", executable)
            self.tool("acc-run", executable, "--inputs", inputs, "--outputs", outputs)
        else:
            self.tool("acc-eval", "--own-types", program, "--inputs", inputs, "--outputs", outputs)
        return np.load(outputs / "y.npy").astype(np.float32)  # the evaluator writes f64

    def check(self, values, source, target, saturate, by):
        with self.subTest(source=source, target=target, saturate=saturate, by=by):
            found = self.cast(values.astype(np.float64), source, target, saturate, by)
            dtype = NARROW[target]
            with np.errstate(all="ignore"):
                given = values
                if saturate:
                    largest = np.float64(ml_dtypes.finfo(dtype).max)
                    wide = values.astype(np.float64 if source == "f64" else np.float32)
                    given = np.where(np.isnan(wide), wide, np.clip(wide, -largest, largest))
                    if target == "f8E8M0FNU":  # has no zero
                        given = np.where(given == 0, wide.dtype.type(2.0 ** -127), given)
                narrow = given.astype(np.float32)  # has all numbers but f64's
                expected = (nearest(given, dtype) if source == "f64"
                            else narrow.astype(dtype).astype(np.float32))
                if target == "f8E8M0FNU" and source != "f64":
                    # Above the least power ml_dtypes rounds up what is below the middle, too.
                    isLeast = (narrow > 2.0 ** -127) & (narrow < 1.5 * 2.0 ** -127)
                    expected = np.where(isLeast, np.float32(2.0 ** -127), expected)
            same = (found.view(np.uint32) == expected.view(np.uint32)) | (
                np.isnan(found) & np.isnan(expected))
            if target in WITHOUT_NAN:
                same |= np.isnan(values.astype(np.float64)) & (found == 0)
            wrong = np.flatnonzero(~same)
            self.assertEqual(len(wrong), 0,
                             [(values[i], found[i], expected[i]) for i in wrong[:5]])

    def test_all_codes(self):
        for source, dtype in NARROW.items():
            for target in NARROW:
                if source != target:
                    for by in ("acc-run", "acc-eval"):
                        self.check(all_codes(dtype), source, target, False, by)
                        self.check(all_codes(dtype), source, target, True, by)

    def test_drawn_numbers(self):
        for source, dtype in WIDE.items():
            values = drawn(dtype, 4_000_000 if source == "f32" else 1_000_000)
            few = drawn(dtype, 50_000)
            for target in NARROW:
                for saturate in (False, True):
                    self.check(values, source, target, saturate, "acc-run")
                    self.check(few, source, target, saturate, "acc-eval")

    def test_products_of_two_formats(self):
        program, executable = self.folder / "m.mlir", self.folder / "m.accx"
        program.write_text("""module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<70x9xf32> = dense<0.375>
  func.func @main(%x: tensor<5x70xf32> {nn.input = "x"}, %w: tensor<70x9xf32> {nn.state = @w})
      -> (tensor<5x9xf32> {nn.output = "y"}) attributes {nn.entry} {
    %c = nn.constant dense<64.0> : tensor<70x9xf32>
    %s = nn.mul %w, %c : tensor<70x9xf32>
    %q = nn.cast %s {saturate} : (tensor<70x9xf32>) -> tensor<70x9xf8E4M3FN>
    %a = nn.cast %x {saturate} : (tensor<5x70xf32>) -> tensor<5x70xf8E5M2>
    %p = nn.matmul %a, %q : (tensor<5x70xf8E5M2>, tensor<70x9xf8E4M3FN>) -> tensor<5x9xf32>
    return %p : tensor<5x9xf32>
  }
}""")
        self.tool("acc-opt", program, "-o", executable)
        inputs, outputs = self.folder / "in", self.folder / "out"
        inputs.mkdir()
        x = np.random.default_rng(1).standard_normal((5, 70)).astype(np.float32) * 30000
        np.save(inputs / "x.npy", x)
        rounded = np.clip(x, -57344, 57344).astype(ml_dtypes.float8_e5m2).astype(np.float64)
        for tool in (("acc-run", executable), ("acc-eval", "--own-types", program)):
            self.tool(*tool, "--inputs", inputs, "--outputs", outputs)
            np.testing.assert_allclose(np.load(outputs / "y.npy"), rounded @ np.full((70, 9), 24.0),
                                       rtol=1e-6, atol=1)


if __name__ == "__main__":
    unittest.main()
