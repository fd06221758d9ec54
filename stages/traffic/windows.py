"""Windows of a series set without copies: an index of first steps, and a gather when a batch is asked for.

A set of windows costs eight bytes a window beside the series itself, whatever the length of a window. The series may be
a numpy array or a torch tensor on any device; a batch is of the same kind and lies on the same device.

Shape suffixes: T time, S sensor, W window, B window of a batch, L context, H horizon.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

    Array = TypeVar("Array", bound=NDArray[np.float32] | torch.Tensor)
else:
    Array = TypeVar("Array")


def window_starts(start: int, stop: int, length: int, stride: int = 1) -> NDArray[np.int64]:
    """First steps of the windows that lie whole within the half-open range ``[start, stop)``.

    Returns
    -------
    ndarray of int64, shape (window,)
        Empty where the range is shorter than a window.
    """
    return np.arange(start, max(start, stop - length + 1), stride, dtype=np.int64)


class Windows(Generic[Array]):
    """Windows of context and horizon that lie whole within one or more ranges of steps.

    Parameters
    ----------
    values_TS
        The series, shape (time, sensor); kept as it is, never copied.
    context, horizon
        Steps that are known, and steps after them that are asked for.
    start, stop
        Half-open range of steps; by default the whole series.
    stride
        Steps from one window to the next.

    Raises
    ------
    ValueError
        The series has not two dimensions, a length is not positive, or a range leaves the series.
    """

    def __init__(
        self, values_TS: Array, context: int, horizon: int, start: int = 0, stop: int | None = None, stride: int = 1
    ) -> None:
        self._prepare(values_TS, context, horizon, [(start, values_TS.shape[0] if stop is None else stop)], stride)

    @classmethod
    def within(
        cls, values_TS: Array, context: int, horizon: int, ranges: Sequence[tuple[int, int]], stride: int = 1
    ) -> Windows[Array]:
        """Windows of several ranges, such as the blocks of a few-shot share; none reaches from one into another."""
        windows = cls.__new__(cls)
        windows._prepare(values_TS, context, horizon, ranges, stride)
        return windows

    def _prepare(
        self, values_TS: Array, context: int, horizon: int, ranges: Sequence[tuple[int, int]], stride: int
    ) -> None:
        if len(values_TS.shape) != 2:
            raise ValueError(f"the series has the shape {tuple(values_TS.shape)}; expected (time, sensor)")
        if context < 1 or horizon < 0 or stride < 1:
            raise ValueError(f"context {context}, horizon {horizon}, stride {stride}; expected at least 1, 0 and 1")
        for start, stop in ranges:
            if not 0 <= start <= stop <= values_TS.shape[0]:
                raise ValueError(f"the range {start} to {stop} leaves the series of {values_TS.shape[0]} steps")
        self.values_TS = values_TS
        self.context, self.horizon = context, horizon
        starts = [window_starts(start, stop, self.length, stride) for start, stop in ranges]
        self.starts_W: NDArray[np.int64] = np.concatenate(starts) if starts else np.empty(0, np.int64)

    @property
    def length(self) -> int:
        """Steps of a window: context and horizon."""
        return self.context + self.horizon

    def __len__(self) -> int:
        return int(self.starts_W.size)

    def steps(self, indices: NDArray[np.integer] | Sequence[int]) -> NDArray[np.int64]:
        """Steps of the series that some windows cover, shape (window of the batch, context + horizon)."""
        return self.starts_W[np.asarray(indices, dtype=np.int64)][:, None] + np.arange(self.length)

    def batch(self, indices: NDArray[np.integer] | Sequence[int]) -> tuple[Array, Array]:
        """Context and target of some windows.

        Parameters
        ----------
        indices
            Windows, from 0 to ``len(self) - 1``.

        Returns
        -------
        context_BSL, target_BSH
            Shapes (window, sensor, context) and (window, sensor, horizon): two views of one fresh array whose rows are
            steps, so that a row is copied at once; call ``contiguous`` where a kernel needs it.
        """
        rows_BTS: Any = _rows(self.values_TS, self.steps(indices))
        return rows_BTS[:, : self.context].swapaxes(1, 2), rows_BTS[:, self.context :].swapaxes(1, 2)

    def batches(
        self, size: int, random: np.random.Generator | None = None
    ) -> Iterator[tuple[NDArray[np.int64], Array, Array]]:
        """Every window exactly once, in order or shuffled: indices_B, context_BSL and target_BSH of each batch.

        The last batch is smaller where ``size`` does not divide the number of windows.
        """
        for indices_B in batch_indices(len(self), size, random):
            context_BSL, target_BSH = self.batch(indices_B)
            yield indices_B, context_BSL, target_BSH


def batch_indices(count: int, size: int, random: np.random.Generator | None = None) -> Iterator[NDArray[np.int64]]:
    """Numbers 0 to ``count - 1``, each once, in pieces of ``size``; shuffled where a generator is given."""
    if size < 1:
        raise ValueError(f"a batch of {size} windows; expected at least 1")
    order = np.arange(count, dtype=np.int64) if random is None else random.permutation(count)
    for begin in range(0, count, size):
        yield order[begin : begin + size]


def _rows(values_TS: Any, steps_BT: NDArray[np.int64]) -> Any:
    """Rows of a series by step, shape (window, step, sensor)."""
    if isinstance(values_TS, np.ndarray):
        return values_TS.take(steps_BT, axis=0)
    import torch

    flat = torch.from_numpy(steps_BT.reshape(-1)).to(values_TS.device)
    return values_TS.index_select(0, flat).view(*steps_BT.shape, values_TS.shape[1])
