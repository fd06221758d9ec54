"""Run lengths of masks, compiled: polygons to runs, COCO's packed text to runs, runs to small masks.

All kernels stand in this one file, as numba's cache on the disk looks at the file of a kernel only.

A mask of height H and width W is a list of run lengths down its columns, the first of them background (COCO's RLE).
Shape suffixes: P points of a polygon, R runs, F runs of many masks one after the other, M masks; h, w a small mask's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")
Runs = NDArray[np.uint32]
#: Edges are drawn on a grid this many times finer than the pixels, as COCO's masks are.
FINER = 5

_njit: Any = numba.njit


def _compiled(function: Callable[P, R]) -> Callable[P, R]:
    return cast("Callable[P, R]", _njit(cache=True, nogil=True)(function))


@_compiled
def crossings(xy_P2: NDArray[np.float64], height: int, width: int) -> NDArray[np.int64]:
    """Places where the outline of a polygon is crossed when going down the columns, in order.

    A place is column * height + row of the first pixel below the crossing. An edge is a line of points on the finer
    grid; it is crossed in a column where it steps over the middle of that column.
    """
    count = len(xy_P2)
    x = np.empty(count + 1, np.int64)
    y = np.empty(count + 1, np.int64)
    for p in range(count):
        x[p] = int(FINER * xy_P2[p, 0] + 0.5)
        y[p] = int(FINER * xy_P2[p, 1] + 0.5)
    x[count], y[count] = x[0], y[0]
    room = 0
    for p in range(count):
        room += max(abs(x[p + 1] - x[p]), abs(y[p + 1] - y[p])) + 1
    found = np.empty(room + 1, np.int64)
    n = 0
    last_u, last_v, begun = 0, 0, False
    for p in range(count):
        across, down = abs(x[p + 1] - x[p]), abs(y[p + 1] - y[p])
        # The points of an edge have the same places whichever end it is drawn from.
        turned = (across >= down and x[p] > x[p + 1]) or (across < down and y[p] > y[p + 1])
        x0, y0, x1, y1 = (x[p + 1], y[p + 1], x[p], y[p]) if turned else (x[p], y[p], x[p + 1], y[p + 1])
        steps = max(across, down)
        slope = 0.0
        if steps:
            slope = (y1 - y0) / steps if across >= down else (x1 - x0) / steps
        for step in range(steps + 1):
            t = steps - step if turned else step
            if across >= down:
                u, v = t + x0, int(y0 + slope * t + 0.5)
            else:
                u, v = int(x0 + slope * t + 0.5), t + y0
            if begun and u != last_u:
                middle = (min(u, last_u) + 0.5) / FINER - 0.5
                column = int(np.floor(middle))
                if column == middle and 0 <= column < width:
                    row = np.ceil(min(max((min(v, last_v) + 0.5) / FINER - 0.5, 0.0), float(height)))
                    found[n] = column * height + int(row)
                    n += 1
            last_u, last_v, begun = u, v, True
    found[n] = height * width
    return np.sort(found[: n + 1])


@_compiled
def runs_between(place_N: NDArray[np.int64]) -> Runs:
    """Run lengths between sorted places where a mask turns; two turns in one place undo each other."""
    run_R = np.empty(len(place_N), np.uint32)
    count, before, i = 0, 0, 0
    while i < len(place_N):
        length = place_N[i] - before
        if length or not count:
            run_R[count] = length
            count += 1
        else:
            i += 1
            if i < len(place_N):
                run_R[count - 1] += place_N[i] - before
        before = place_N[min(i, len(place_N) - 1)]
        i += 1
    return run_R[:count].copy()


@_compiled
def unpacked(text_B: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Run lengths of COCO's packed text: 5 bits a character, less 48; from the third on, less the run two before.

    A text that ends inside a number, or holds other characters, gives [-1].
    """
    run_R = np.empty(len(text_B), np.int64)
    refused = np.full(1, -1, np.int64)
    count, i = 0, 0
    while i < len(text_B):
        value, shift, more = 0, 0, True
        while more:
            if i == len(text_B) or not 48 <= text_B[i] < 112 or shift > 50:
                return refused
            piece = int(text_B[i]) - 48
            value |= (piece & 31) << shift
            more = piece & 32 != 0
            shift += 5
            i += 1
            if not more and piece & 16:
                value -= 1 << shift
        if count > 2:
            value += run_R[count - 2]
        run_R[count] = value
        count += 1
    return run_R[:count]


@_compiled
def packed(run_R: Runs) -> NDArray[np.uint8]:
    """COCO's packed text of run lengths; :func:`unpacked` turns it back."""
    text_B = np.empty(7 * len(run_R), np.uint8)
    count = 0
    for r in range(len(run_R)):
        value = np.int64(run_R[r])  # signed: a run may be shorter than the one two before
        if r > 2:
            value -= np.int64(run_R[r - 2])
        more = True
        while more:
            piece = value & 31
            value >>= 5
            more = value != (-1 if piece & 16 else 0)
            text_B[count] = piece + 48 + (32 if more else 0)
            count += 1
    return text_B[:count].copy()


@_compiled
def filled(run_R: Runs, size: int) -> NDArray[np.uint8]:
    """All pixels of a mask down its columns."""
    pixel_N = np.zeros(size, np.uint8)
    place, value = 0, 0
    for r in range(len(run_R)):
        end = place + run_R[r]
        if value:
            pixel_N[place:end] = 1
        place, value = end, 1 - value
    return pixel_N


@_compiled
def runs_of(pixel_N: NDArray[np.uint8]) -> Runs:
    """Run lengths of the pixels of a mask down its columns."""
    run_R = np.empty(len(pixel_N) + 1, np.uint32)
    count, length, value = 0, 0, 0
    for n in range(len(pixel_N)):
        if (pixel_N[n] != 0) != (value != 0):
            run_R[count] = length
            count, length, value = count + 1, 0, 1 - value
        length += 1
    run_R[count] = length
    return run_R[: count + 1].copy()


@_compiled
def measured(run_F: Runs, start_M: NDArray[np.int64], height_M: NDArray[np.int64]) -> NDArray[np.int64]:
    """Area and box of masks (M, 5): pixels, left, top, width, height; a box of zeros where there is no pixel."""
    count = len(start_M) - 1
    found = np.zeros((count, 5), np.int64)
    for m in range(count):
        height = height_M[m]
        place, area = 0, 0
        left, right, top, bottom = -1, -1, height, -1
        for f in range(start_M[m], start_M[m + 1]):
            end = place + run_F[f]
            if (f - start_M[m]) % 2 and end > place:
                area += end - place
                first, last = place // height, (end - 1) // height
                if left < 0:
                    left = first
                right = last
                if first == last:
                    top = min(top, place % height)
                    bottom = max(bottom, (end - 1) % height)
                else:
                    top, bottom = 0, height - 1
            place = end
        if area:
            found[m, 0] = area
            found[m, 1], found[m, 2] = left, top
            found[m, 3], found[m, 4] = right - left + 1, bottom - top + 1
    return found


@_compiled
def sampled(
    run_F: Runs,
    start_M: NDArray[np.int64],
    height_M: NDArray[np.int64],
    width_M: NDArray[np.int64],
    height: int,
    width: int,
) -> NDArray[np.uint8]:
    """Masks at another size (M, h, w), each pixel that of the nearest middle; no mask is built at its own size."""
    count = len(start_M) - 1
    small = np.zeros((count, height, width), np.uint8)
    for m in range(count):
        tall, wide = height_M[m], width_M[m]
        f, end = start_M[m], 0
        if start_M[m] == start_M[m + 1]:
            continue
        end, before = int(run_F[f]), -1
        for w in range(width):
            column = ((2 * w + 1) * wide // (2 * width)) * tall
            if column == before:
                small[m, :, w] = small[m, :, w - 1]
                continue
            before = column
            for h in range(height):
                place = column + (2 * h + 1) * tall // (2 * height)
                while end <= place and f + 1 < start_M[m + 1]:
                    f += 1
                    end += int(run_F[f])
                small[m, h, w] = (f - start_M[m]) % 2 if end > place else 0
    return small


@_compiled
def common(run_R: Runs, other_R: Runs) -> int:
    """Pixels that two masks of one size share."""
    i, j, shared = 0, 0, 0
    if not len(run_R) or not len(other_R):
        return 0
    left_i, left_j = int(run_R[0]), int(other_R[0])
    while True:
        step = min(left_i, left_j)
        if i % 2 and j % 2:
            shared += step
        left_i -= step
        left_j -= step
        while not left_i:
            i += 1
            if i == len(run_R):
                return shared
            left_i = int(run_R[i])
        while not left_j:
            j += 1
            if j == len(other_R):
                return shared
            left_j = int(other_R[j])
