from __future__ import annotations

import numpy as np
import pytest
import torch

from stages.traffic.windows import Windows, batch_indices, window_starts

SERIES = np.arange(20, dtype=np.float32)[:, None] * 10 + np.arange(3, dtype=np.float32)  # step 4 of sensor 2 is 42


def test_a_window_is_context_and_target_of_each_sensor() -> None:
    context, target = Windows(SERIES, context=3, horizon=2).batch([0, 4])
    assert (context.shape, target.shape) == ((2, 3, 3), (2, 3, 2))
    np.testing.assert_array_equal(context[1, 2], [42, 52, 62])
    np.testing.assert_array_equal(target[1, 2], [72, 82])


def test_a_series_has_as_many_windows_as_places_to_start_one() -> None:
    assert len(Windows(SERIES, 3, 2)) == 20 - 5 + 1
    assert len(Windows(SERIES, 3, 2, stride=4)) == 4
    assert len(Windows(SERIES, 3, 2, start=5, stop=10)) == 1
    assert len(Windows(SERIES, 3, 2, start=5, stop=9)) == 0


def test_no_window_reaches_out_of_its_range() -> None:
    windows = Windows.within(SERIES, 3, 2, [(2, 8), (12, 17)])
    steps = windows.steps(range(len(windows)))
    np.testing.assert_array_equal(steps[:, 0], [2, 3, 12])
    assert all(set(row) <= set(range(2, 8)) or set(row) <= set(range(12, 17)) for row in steps.tolist())


def test_numpy_and_torch_give_the_same_windows() -> None:
    ours = Windows(SERIES, 4, 3).batch(np.array([7, 0, 7]))
    theirs = Windows(torch.from_numpy(SERIES), 4, 3).batch(np.array([7, 0, 7]))
    for array, tensor in zip(ours, theirs, strict=True):
        assert isinstance(tensor, torch.Tensor)
        np.testing.assert_array_equal(array, tensor.numpy())


def test_windows_equal_those_that_are_cut_and_stacked() -> None:
    stacked = np.stack([SERIES[start : start + 5] for start in range(16)]).transpose(0, 2, 1)
    context, target = Windows(SERIES, 3, 2).batch(range(16))
    np.testing.assert_array_equal(np.concatenate([context, target], axis=2), stacked)


def test_the_series_is_kept_and_never_copied() -> None:
    tensor = torch.from_numpy(SERIES)
    windows = Windows(tensor, 3, 2)
    assert windows.values_TS.data_ptr() == SERIES.ctypes.data
    assert windows.starts_W.nbytes == 8 * len(windows)


def test_changing_a_batch_changes_no_series() -> None:
    before = SERIES.copy()
    context, _ = Windows(SERIES, 3, 2).batch([0])
    context[:] = -1
    np.testing.assert_array_equal(SERIES, before)


@pytest.mark.parametrize("shuffled", [False, True])
def test_five_windows_in_batches_of_four_come_exactly_once_each(shuffled: bool) -> None:
    windows = Windows(SERIES, 14, 2)
    assert len(windows) == 5
    found = list(windows.batches(4, np.random.default_rng(0) if shuffled else None))
    assert [len(context) for _, context, _ in found] == [4, 1]
    assert sorted(np.concatenate([indices for indices, _, _ in found]).tolist()) == [0, 1, 2, 3, 4]


def test_the_order_follows_the_generator() -> None:
    first, second = (np.concatenate(list(batch_indices(100, 7, np.random.default_rng(3)))) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.tolist() != list(range(100))


def test_starts_are_those_of_whole_windows() -> None:
    assert window_starts(10, 16, 4).tolist() == [10, 11, 12]
    assert window_starts(10, 13, 4).tolist() == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"context": 0}, "context 0, horizon 2, stride 1; expected at least 1, 0 and 1"),
        ({"stride": 0}, "stride 0; expected"),
        ({"stop": 21}, "the range 0 to 21 leaves the series of 20 steps"),
        ({"start": -1}, "the range -1 to 20 leaves the series"),
        ({"values_TS": SERIES[:, 0]}, r"the series has the shape \(20,\); expected \(time, sensor\)"),
    ],
)
def test_windows_that_cannot_be_are_refused(change: dict[str, object], told: str) -> None:
    arguments = {"values_TS": SERIES, "context": 3, "horizon": 2} | change
    with pytest.raises(ValueError, match=told):
        Windows(**arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a batch of 0 windows"):
        next(batch_indices(5, 0))
