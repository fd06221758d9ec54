"""One image file to upright RGB of bounded size, with what was changed; its own bytes where nothing had to be."""

from __future__ import annotations

import hashlib
import io
import warnings
from pathlib import Path
from typing import NamedTuple

from PIL import Image as Pillow
from PIL import ImageOps

from stages.ingest.refcoco.annotations import Image

#: Quality of JPEG where an image has to be written anew.
QUALITY = 95
LOSSLESS = ("PNG", "BMP", "GIF", "TIFF", "PPM")
#: EXIF's tag of the orientation, and the value of an upright image.
ORIENTATION, UPRIGHT = 0x0112, 1
KINDS = {"L": "grey", "LA": "grey", "1": "black and white", "I;16": "16 bit grey", "I": "32 bit grey", "P": "palette"}


class Stored(NamedTuple):
    """An image as it is stored; sizes in pixels.

    Attributes
    ----------
    content
        JPEG or PNG, RGB, upright; None where the file is missing or no image.
    height, width
        Of ``content``.
    as_recorded
        Whether the file has the size of the image table.
    note
        What was changed, or what is wrong; None where the bytes are the file's own.
    sha256
        Of the file's bytes; None where there are none.
    """

    content: bytes | None
    height: int | None
    width: int | None
    as_recorded: bool | None
    note: str | None
    sha256: str | None


def store(folder: Path, image: Image, longest: int) -> Stored:
    """Read an image of a set.

    An image whose EXIF orientation is not upright is turned, unless its annotations are in the frame of the pixels as
    they lie in the file.

    Parameters
    ----------
    folder
        Of the images.
    longest
        Longest side in pixels; a larger image shrinks.
    """
    file = folder / image.file_name
    if not file.resolve().is_relative_to(folder.resolve()):
        return Stored(None, None, None, None, "the file name leads out of the folder of images", None)
    try:
        raw = file.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return Stored(None, None, None, None, "no such file", None)
    digest = hashlib.sha256(raw).hexdigest()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Pillow.DecompressionBombWarning)
            with Pillow.open(io.BytesIO(raw)) as opened:
                opened.load()
                return _stored(opened, raw, image, longest)._replace(sha256=digest)
    # Pillow raises nearly anything for a file that is not what it claims to be.
    except Exception as error:
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        return Stored(None, None, None, None, f"no image ({told})", digest)


def _stored(opened: Pillow.Image, raw: bytes, image: Image, longest: int) -> Stored:
    notes = []
    form, upright = opened.format, opened
    if opened.getexif().get(ORIENTATION, UPRIGHT) != UPRIGHT:
        turned = ImageOps.exif_transpose(opened)
        size = (image.width, image.height)
        if turned.size != size and opened.size == size:
            notes.append("EXIF orientation passed over: the annotations are in the frame of the pixels")
        else:
            upright = turned
            notes.append("turned upright by EXIF")
    as_recorded = upright.size == (image.width, image.height)
    if not as_recorded:
        notes.append(f"{upright.height} x {upright.width} pixels, recorded {image.height} x {image.width}")
    if upright.mode != "RGB":
        notes.append(f"{KINDS.get(upright.mode, upright.mode)} to RGB")
        upright = _rgb(upright)
    if max(upright.size) > longest:
        before = upright.size
        upright = upright.resize(_within(before, longest), Pillow.Resampling.LANCZOS)
        notes.append(f"shrunk from {before[1]} x {before[0]}")
    own = form in ("JPEG", "PNG") and all("recorded" in note for note in notes)
    content = raw if own else _encoded(upright, form)
    return Stored(content, upright.height, upright.width, as_recorded, "; ".join(notes) or None, None)


def _rgb(image: Pillow.Image) -> Pillow.Image:
    if image.mode.startswith("I"):  # Pillow would cut off what lies above 255
        low, high = image.getextrema()
        scale = 255 / max(high - low, 1)  # type: ignore[operator]
        image = image.convert("F").point(lambda value: (value - low) * scale).convert("L")
    return image.convert("RGB")


def _within(size: tuple[int, int], longest: int) -> tuple[int, int]:
    scale = longest / max(size)
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _encoded(image: Pillow.Image, form: str | None) -> bytes:
    stream = io.BytesIO()
    if form in LOSSLESS:
        image.save(stream, "PNG")
    else:
        image.save(stream, "JPEG", quality=QUALITY, subsampling=0)
    return stream.getvalue()
