"""Images and masks of a set at the network's size, decoded once, so that no update waits for a file.

Shape suffixes: I image, O object, S sentence, L word, H W pixels at the network's size, C red green blue.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stages.accepted.refcoco import Accepted
from stages.artifacts import sha256_arrays
from stages.refcoco.masks import decode_small
from stages.systems.l2l.words import Vocabulary, cut_words

TRAIN, VALIDATION = "train", "validation"


@dataclass(frozen=True)
class Pictures:
    """A set in memory: about 9 kB an image and 2 kB an object at 48 x 48 pixels.

    Attributes
    ----------
    image_IHWC, mask_OHW
        Bytes; masks are 0 and 1.
    word_SL
        Places of the words in the vocabulary.
    object_S, image_S
        Object and image of each sentence.
    cut
        Words beyond the longest sentence that is read.
    """

    image_IHWC: NDArray[np.uint8]
    mask_OHW: NDArray[np.uint8]
    word_SL: NDArray[np.int64]
    object_S: NDArray[np.int64]
    image_S: NDArray[np.int64]
    vocabulary: Vocabulary
    cut: int

    @property
    def digest(self) -> str:
        """Hash of the pixels, masks and words."""
        return sha256_arrays(
            {"image": self.image_IHWC, "mask": self.mask_OHW, "word": self.word_SL, "object": self.object_S}
        )


def load(accepted: Accepted, side: int, tokens: int) -> Pictures:
    """Decode and resize a set; the vocabulary is that of the training part."""
    trained = [accepted.tokens_S[s] for s in accepted.part(TRAIN)]
    vocabulary = Vocabulary.of(trained)
    return Pictures(
        image_IHWC=decode_images(accepted.image_I, side),
        mask_OHW=decode_small(accepted.run_F, accepted.start_O1, accepted.size_I2[accepted.image_O], side, side),
        word_SL=vocabulary.encode(accepted.tokens_S, tokens),
        object_S=accepted.object_S,
        image_S=accepted.image_O[accepted.object_S],
        vocabulary=vocabulary,
        cut=cut_words(accepted.tokens_S, tokens),
    )


def decode_images(encoded: Sequence[bytes], side: int) -> NDArray[np.uint8]:
    """Images at one size (I, side, side, C); the shape of a picture is not kept."""
    from PIL import Image

    found = np.zeros((len(encoded), side, side, 3), np.uint8)
    for row_HWC, content in zip(found, encoded, strict=True):
        with Image.open(io.BytesIO(content)) as image:
            # A JPEG can be decoded at a half, a quarter or an eighth of its size, which is most of the work.
            image.draft("RGB", (2 * side, 2 * side))
            row_HWC[:] = np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.BOX))
    return found
