"""The alphabet: case, T, ambiguous codes, tokens with and without ends."""

from __future__ import annotations

import numpy as np
import pytest

from stages.rna import alphabet
from stages.rna.alphabet import AMBIGUOUS, TOKENS, canonical_share, decode, encode, gc_share, normal, unknown_bases
from stages.rna.structure import parse


def test_lower_case_and_t_become_upper_case_and_u() -> None:
    assert normal("acguT") == "ACGUU"
    assert unknown_bases("ACGUU") == 0


def test_x_is_an_unknown_base_and_ambiguous_codes_stay() -> None:
    assert normal("axRy") == "ANRY"
    assert unknown_bases("ANRY") == 3


def test_each_ambiguous_code_stands_for_its_bases() -> None:
    complement = str.maketrans("ACGU", "UGCA")
    by_bases = {frozenset(bases): code for code, bases in AMBIGUOUS.items()}
    assert len(by_bases) == 11
    for code, bases in AMBIGUOUS.items():
        pair = by_bases[frozenset(bases.translate(complement))]
        assert (code, pair) in zip("RYSWKMBDHVN", "YRSWMKVHDBN", strict=True)


def test_five_bases_have_five_tokens_and_seven_with_ends() -> None:
    assert [TOKENS[token] for token in encode("ACGUN")] == list("ACGUN")
    assert [TOKENS[token] for token in encode("ACGUR", ends=True)] == ["<start>", *"ACGUN", "<end>"]
    assert encode("").shape == (0,)
    assert encode("", ends=True).tolist() == [alphabet.START, alphabet.END]


def test_tokens_and_back() -> None:
    assert decode(encode("GGACN", ends=True)) == "GGACN"
    assert decode(np.array([alphabet.FIRST_BASE, alphabet.MASK, alphabet.PAD])) == "A?"


def test_shares_count_known_bases_only() -> None:
    assert gc_share("GCAN") == pytest.approx(2 / 3)
    assert gc_share("NN") is None
    assert gc_share("") is None


def test_gu_is_canonical_and_a_pair_with_an_unknown_base_does_not_count() -> None:
    assert canonical_share("GAAAU", parse("(...)")) == 1
    assert canonical_share("GAAAA", parse("(...)")) == 0
    assert canonical_share("NAAAU", parse("(...)")) is None
    assert canonical_share("GCAAANU", parse("((...))")) == 1
    assert canonical_share("GCAAAGG", parse("((...))")) == 0.5
    assert canonical_share("AAAA", parse("....")) is None
