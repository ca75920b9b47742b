"""images: a folder for each class, or a column of images, to pixel_values [rows, channels,
height, width] and labels."""
import io
import pathlib

import numpy as np

from acc_export import Refused

from .classes import Classes
from .rows import missing
from .sources import BLOCK, Source

_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm",
             ".npy")


def _pillow():
    try:
        from PIL import Image
    except ImportError as error:
        raise Refused("images need Pillow: pip install pillow, or give .npy files of [height, "
                      "width, channels]") from error
    return Image


def _floats(text, channels, flag):
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) not in (1, channels) or flag == "--std" and not all(values):
        raise Refused(f"expected one number or {channels} for {flag}, found '{text}'")
    return np.array(values if len(values) == channels else values * channels, np.float64)


class _Pixels:
    """One image to [channels, height, width] in float32: converted to RGB or grey, resized,
    divided by 255, and normalised."""

    def __init__(self, options, inputs):
        shape = inputs.shape("pixel_values")
        if options.size is None and (shape is None or len(shape) != 3):
            raise Refused("expected --size HEIGHTxWIDTH (or one number), or --for the folder of "
                          "the exported model")
        self.channels = 1 if options.grey else 3
        if options.size is None:
            self.channels, self.height, self.width = shape
            if options.grey and self.channels != 1:
                raise Refused(f"the model takes {self.channels} channels, found --grey")
        else:
            height, _, width = options.size.partition("x")
            if not height.isdigit() or width and not width.isdigit() or not int(height):
                raise Refused(f"expected --size HEIGHTxWIDTH, found '{options.size}'")
            self.height, self.width = int(height), int(width or height)
        if self.channels not in (1, 3):
            raise Refused(f"expected images of 1 or 3 channels, found {self.channels}")
        self.fit = options.fit
        self.mean = _floats(options.mean, self.channels, "--mean")[:, None, None]
        self.std = _floats(options.std, self.channels, "--std")[:, None, None]

    def of(self, image, place):
        """`image`: what Pillow opens (path or bytes), or an array [height, width(, channels)]."""
        if isinstance(image, np.ndarray):
            return self._of_array(image, place)
        from PIL import ImageOps
        try:
            with _pillow().open(image) as opened:
                # As it is to be looked at: cameras write how they were held.
                picture = ImageOps.exif_transpose(opened).convert(
                    "L" if self.channels == 1 else "RGB")
        except (OSError, SyntaxError, ValueError) as error:
            raise Refused(f"{place}: expected an image, found what Pillow cannot read: {error}"
                          ) from error
        size = (self.width, self.height)
        if picture.size != size:
            bilinear = _pillow().Resampling.BILINEAR
            picture = (ImageOps.fit(picture, size, bilinear) if self.fit == "crop" else
                       picture.resize(size, bilinear))
        return self._normal(np.asarray(picture).reshape(self.height, self.width, -1))

    def _of_array(self, image, place):
        if image.ndim == 2:
            image = image[:, :, None]
        if image.shape != (self.height, self.width, self.channels) or image.dtype.kind not in "uf":
            raise Refused(f"{place}: expected an array [{self.height}, {self.width}, "
                          f"{self.channels}] of uint8 or of floats from 0 to 1, found "
                          f"{list(image.shape)} of {image.dtype.name}: arrays are not resized")
        return self._normal(image)

    def _normal(self, image):
        scale = 255.0 if image.dtype == np.uint8 else 1.0
        return ((image.transpose(2, 0, 1) / scale - self.mean) / self.std).astype(np.float32)


def _of_folders(folder):
    """(class names, [(file, class)]) of a folder of folders."""
    names = sorted(entry.name for entry in folder.iterdir()
                   if entry.is_dir() and not entry.name.startswith("."))
    files = [(file, number) for number, name in enumerate(names)
             for file in sorted((folder / name).rglob("*")) if file.suffix.lower() in _SUFFIXES]
    return names, files


def _is_folder_of_classes(path):
    return path.is_dir() and not any((path / name).exists()
                                     for name in ("state.json", "dataset_dict.json")) and any(
        entry.is_dir() for entry in path.iterdir())


def convert(options, sources, split, inputs, output, report):
    pixels = _Pixels(options, inputs)
    folders = [pathlib.Path(source) for source in sources]
    if all(_is_folder_of_classes(folder) for folder in folders):
        described = _convert_folders(options, folders, pixels, split, inputs, output, report)
    else:
        described = _convert_rows(options, Source(sources), pixels, split, inputs, output, report)
    return {"size": [pixels.channels, pixels.height, pixels.width], "fit": pixels.fit,
            "mean": pixels.mean.ravel().tolist(), "std": pixels.std.ravel().tolist(),
            **described}


def _append(images, labels, name, inputs, output):
    arrays = {"pixel_values": np.stack(images), "labels": np.array(labels)}
    output.append(name, inputs.fit(arrays, set(arrays)))


def _step(pixels):
    """Images at a time: some 16 MB."""
    return max(1, min(BLOCK, (16 << 20) // (4 * pixels.channels * pixels.height * pixels.width)))


def _convert_folders(options, folders, pixels, split, inputs, output, report):
    names, files = None, []
    for folder in folders:
        found, more = _of_folders(folder)
        if names not in (None, found):
            raise Refused(f"expected the same classes in each folder, found {', '.join(found)} in "
                          f"'{folder}' and {', '.join(names)} in '{folders[0]}'")
        names = found
        files += more
    if options.classes and options.classes.split(",") != names:
        wanted = options.classes.split(",")
        if not set(names) <= set(wanted):
            raise Refused(f"expected folders of the classes {options.classes}, found "
                          f"{', '.join(names)}")
        files = [(file, wanted.index(names[number])) for file, number in files]
        names = wanted
    if not files:
        raise Refused(f"expected images ({', '.join(_SUFFIXES)}) in folders of '{folders[0]}', "
                      "found none")
    step = _step(pixels)
    for first in range(0, len(files), step):
        part = files[first:first + step]
        for name, indices in split.of(first, len(part)):
            made = [pixels.of(np.load(file) if file.suffix == ".npy" else file, file)
                    for file, _ in (part[i] for i in indices)]
            if made:
                _append(made, [part[i][1] for i in indices], name, inputs, output)
        report.progress(len(part))
    return {"classes": {"folder": names}}


def _convert_rows(options, source, pixels, split, inputs, output, report):
    """Of a column: bytes as datasets' Image has them ({"bytes", "path"}), bytes, or a path."""
    names = source.names()
    column = options.columns.get("image") or ("image" if "image" in names else "img")
    label = options.columns.get("label", "label")
    classes, seen, step = Classes(options, source, label, report), 0, _step(pixels)
    for block in source.blocks():
        images, labels = block.column(column), block.column(label)
        for name, indices in split.of(seen, block.count):
            kept = [i for i in indices if classes.has(labels[i], block, i)]
            for at in range(0, len(kept), step):
                made, wanted = [], []
                for i in kept[at:at + step]:
                    image = images[i]
                    if isinstance(image, dict):
                        image = image.get("bytes") or image.get("path")
                    if image is None:
                        missing(options, report, block.place(i), f"an image in '{column}'")
                        continue
                    if isinstance(image, bytes):
                        image = io.BytesIO(image)
                    elif isinstance(image, str):
                        image = pathlib.Path(block.file).parent / image
                    made.append(pixels.of(image, block.place(i)))
                    wanted.append(classes.number(labels[i], block.place(i)))
                if made:
                    _append(made, wanted, name, inputs, output)
        seen += block.count
        report.progress(block.count)
    return classes.description()
