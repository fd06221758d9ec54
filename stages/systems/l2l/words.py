"""The vocabulary: words of the training part, and sentences as places in it.

Shape suffixes: S sentence, L word of a sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Place of no word, and of a word that the training part does not have.
NOTHING, UNKNOWN = 0, 1


@dataclass(frozen=True)
class Vocabulary:
    """Words by how often the training part has them, most frequent first; those of equal count by letter."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]]) -> Vocabulary:
        """Collect the words of sentences."""
        counts = Counter(word.lower() for sentence in sentences for word in sentence)
        return cls(tuple(sorted(counts, key=lambda word: (-counts[word], word))))

    def __len__(self) -> int:
        return len(self.words) + 2

    def encode(self, sentences: Sequence[Sequence[str]], length: int) -> NDArray[np.int64]:
        """Places of the words of each sentence (S, L); words after the first ``length`` are left out."""
        place = {word: index + 2 for index, word in enumerate(self.words)}
        found_SL = np.full((len(sentences), length), NOTHING)
        for row_L, sentence in zip(found_SL, sentences, strict=True):
            known = [place.get(word.lower(), UNKNOWN) for word in sentence[:length]]
            row_L[: len(known)] = known
        return found_SL


def cut_words(sentences: Iterable[Sequence[str]], length: int) -> int:
    """Words that :meth:`Vocabulary.encode` leaves out."""
    return sum(max(0, len(sentence) - length) for sentence in sentences)
