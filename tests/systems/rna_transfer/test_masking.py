"""Masked language modelling: 15 %, of which 80 / 10 / 10, and a loss on those bases alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stages.rna import alphabet
from stages.rna.alphabet import FIRST_BASE, MASK, UNKNOWN
from stages.systems.rna_transfer.masking import hide, masked_loss, unigram_loss


def test_shares_are_those_of_bert() -> None:
    rng = np.random.default_rng(0)
    token_B = rng.integers(FIRST_BASE, UNKNOWN, 200_000).astype(np.uint8)
    hidden = hide(token_B, 0.15, rng)
    chosen = len(hidden.chosen_C)
    assert chosen / len(token_B) == pytest.approx(0.15, abs=0.003)
    seen_C = hidden.token_B[hidden.chosen_C]
    assert float((seen_C == MASK).mean()) == pytest.approx(0.8, abs=0.01)
    # Of the tenth that is replaced, a quarter happens to get its own base.
    assert float((seen_C == token_B[hidden.chosen_C]).mean()) == pytest.approx(0.1 + 0.1 / 4, abs=0.01)
    untouched = np.setdiff1d(np.arange(len(token_B)), hidden.chosen_C)
    np.testing.assert_array_equal(hidden.token_B[untouched], token_B[untouched])
    np.testing.assert_array_equal(hidden.target_C, token_B[hidden.chosen_C].astype(int) - FIRST_BASE)


def test_no_loss_on_bases_that_were_not_chosen() -> None:
    token_B = alphabet.encode("ACGUACGUACGU" * 20)
    hidden = hide(token_B, 0.15, np.random.default_rng(0))
    logit_BK = torch.randn(len(token_B), 4, requires_grad=True)
    loss = masked_loss(logit_BK, hidden)
    loss.backward()
    assert logit_BK.grad is not None
    changed = torch.nonzero(logit_BK.grad.abs().sum(dim=1))[:, 0]
    np.testing.assert_array_equal(changed.numpy(), hidden.chosen_C)
    other = logit_BK.detach().clone()
    other[np.setdiff1d(np.arange(len(token_B)), hidden.chosen_C)] = 99
    assert float(masked_loss(other, hidden)) == float(loss.detach())


def test_bases_that_are_not_known_are_never_asked_for() -> None:
    token_B = alphabet.encode("N" * 50 + "A")
    hidden = hide(token_B, 0.9, np.random.default_rng(0))
    assert hidden.chosen_C.tolist() == [50]
    with pytest.raises(ValueError, match="no base is A, C, G or U"):
        hide(token_B[:50], 0.15, np.random.default_rng(0))


def test_at_least_one_base_is_chosen() -> None:
    assert len(hide(alphabet.encode("AC"), 1e-9, np.random.default_rng(0)).chosen_C) == 1


def test_four_bases_alike_often_have_the_entropy_of_four() -> None:
    assert unigram_loss(alphabet.encode("ACGUN" * 3)) == pytest.approx(np.log(4))
    assert unigram_loss(alphabet.encode("AAAA")) == 0
