"""Words, pictures, batches and strong views."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.systems.l2l.pictures import decode_images, load
from stages.systems.l2l.settings import Views
from stages.systems.l2l.views import Loaded, draws, strong
from stages.systems.l2l.words import NOTHING, UNKNOWN, Vocabulary, cut_words
from tests.systems.l2l.small import COLOURS, SETTINGS, SIDE, made, perfect, png

ACCEPTED = made()
STILL = Views(shift=0, zoom=0, light=0, noise=0, words=0, prior=0)


def loaded() -> Loaded:
    return Loaded(load(ACCEPTED, SIDE, 6), perfect(ACCEPTED), torch.device("cpu"))


def test_words_stand_by_how_often_they_are_said() -> None:
    vocabulary = Vocabulary.of([["Red", "ball"], ["red", "ring"], ["ball", "red"]])
    assert vocabulary.words == ("red", "ball", "ring")
    assert vocabulary.encode([["ring", "RED", "zebra"]], 4).tolist() == [[4, 2, UNKNOWN, NOTHING]]


def test_words_beyond_the_longest_sentence_are_counted() -> None:
    sentences = [["a"] * 5, ["b"] * 2]
    assert cut_words(sentences, 3) == 2
    assert Vocabulary.of(sentences).encode(sentences, 3).tolist() == [[2, 2, 2], [3, 3, 0]]


def test_the_vocabulary_knows_only_the_training_part() -> None:
    words = set(load(ACCEPTED, SIDE, 6).vocabulary.words)
    trained = {word for s in ACCEPTED.part("train") for word in ACCEPTED.tokens_S[s]}
    assert words == trained


def test_an_image_keeps_its_colours_at_another_size() -> None:
    found = decode_images([png(np.full((30, 50, 3), COLOURS["red"], np.uint8))], 8)
    assert found.shape == (1, 8, 8, 3)
    assert (found == COLOURS["red"]).all()


def test_masks_lie_where_the_image_has_their_colour() -> None:
    pictures = load(ACCEPTED, SIDE, 6)
    for s in range(len(ACCEPTED.sentence_S)):
        inside = pictures.image_IHWC[pictures.image_S[s]][pictures.mask_OHW[pictures.object_S[s]] > 0]
        assert np.abs(np.median(inside, axis=0) - COLOURS[ACCEPTED.tokens_S[s][0]]).max() < 10


def test_a_view_that_changes_nothing_is_the_plain_one() -> None:
    batch = loaded().batch(np.arange(4))
    view = strong(batch, STILL, np.random.default_rng(0))
    torch.testing.assert_close(view.image_BCHW, batch.image_BCHW)
    assert torch.equal(view.mask_BHW, batch.mask_BHW)
    assert torch.equal(view.word_BL, batch.word_BL)


def test_image_prior_and_mask_move_alike() -> None:
    batch = loaded().batch(np.arange(8))
    moving = STILL.model_copy(update={"shift": 0.2, "zoom": 0.2})
    view = strong(batch, moving, np.random.default_rng(1))
    assert not torch.equal(view.mask_BHW, batch.mask_BHW)
    # The prior is the true mask: it still is after the move.
    assert torch.equal((view.prior_BHW > 0.5).to(torch.float32), view.mask_BHW)


def test_a_prior_that_is_always_left_out_is_nothing() -> None:
    batch = loaded().batch(np.arange(4))
    view = strong(batch, STILL.model_copy(update={"prior": 1.0}), np.random.default_rng(0))
    assert float(view.prior_BHW.max()) == 0


def test_a_sentence_keeps_a_word() -> None:
    batch = loaded().batch(np.arange(20))
    view = strong(batch, STILL.model_copy(update={"words": 0.9}), np.random.default_rng(0))
    assert ((view.word_BL > 0).sum(dim=1) > 0).all()
    assert (view.word_BL == 0).sum() > (batch.word_BL == 0).sum()


def test_the_same_numbers_give_the_same_view() -> None:
    batch = loaded().batch(np.arange(4))
    first, second = (strong(batch, SETTINGS.views, np.random.default_rng(5)) for _ in range(2))
    assert torch.equal(first.image_BCHW, second.image_BCHW)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 20), st.integers(1, 60))
def test_every_sentence_is_drawn_before_any_comes_again(pool: int, count: int) -> None:
    found = draws(np.arange(pool), count, np.random.default_rng(0))
    times = np.bincount(found, minlength=pool)
    assert len(found) == count
    assert times.max() - times.min() <= 1


def test_values_are_bytes_on_the_device() -> None:
    found = loaded()
    assert {found.image_ICHW.dtype, found.mask_OHW.dtype, found.prior_SHW.dtype} == {torch.uint8}
    assert found.batch(np.array([3])).image_BCHW.max() == pytest.approx(
        load(ACCEPTED, SIDE, 6).image_IHWC[load(ACCEPTED, SIDE, 6).image_S[3]].max() / 255
    )
