"""The encoder: a pre-norm transformer over single bases, with rotary positions, on batches without padding.

The tokens of all molecules of a batch stand one after the other, and every dense layer sees them at once. Attention
runs on blocks of molecules of equal length, so that no token sees another molecule, and none is made up.

Shape suffixes: T token (bases and the two ends of each molecule), B base, L position, D unit, H head, E unit of a head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from stages.rna.alphabet import END, START, TOKENS
from stages.systems.rna_transfer.settings import Size

#: Units of the dense layers of a block, by width.
WIDER = 4
#: Base of the rotary frequencies (Su et al. 2024, RoFormer, section 3.2.2).
THETA = 10_000.0
#: Bases that are predicted: A, C, G, U.
KNOWN = 4


def device() -> torch.device:
    """The GPU that the environment gives, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: the numbers do not depend on how many cores there are; seeds run side by side."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


#: Molecules, and tokens of each, of every run of molecules of equal length.
Blocks = tuple[tuple[int, int], ...]


class Packed(NamedTuple):
    """Molecules without padding.

    Attributes
    ----------
    token_T
        Tokens, each molecule between its start and its end; molecules of equal length stand together.
    position_T
        Position of each token in its molecule.
    blocks
        Molecules, and tokens of each, of every block of equal lengths.
    base_B
        Where the bases stand, in the order of the caller's molecules: what the encoder gives back.
    lengths
        Bases of the caller's molecules.
    """

    token_T: Tensor
    position_T: Tensor
    blocks: Blocks
    base_B: Tensor
    lengths: tuple[int, ...]

    def to(self, place: torch.device) -> Packed:
        """The same on a device."""
        return self._replace(
            token_T=self.token_T.to(place), position_T=self.position_T.to(place), base_B=self.base_B.to(place)
        )


def pack(molecules: Sequence[NDArray[np.uint8]]) -> Packed:
    """Put molecules into one batch.

    Parameters
    ----------
    molecules
        Tokens of stages/rna/alphabet.py without ends, (L,) each.

    Raises
    ------
    ValueError
        There is no molecule.
    """
    if not molecules:
        raise ValueError("a batch of no molecules")
    length_M = np.array([len(molecule) for molecule in molecules])
    order_M = np.argsort(length_M, kind="stable")
    tokens: list[NDArray[np.int64]] = []
    first_M = np.empty(len(molecules), np.int64)
    at = 0
    for m in order_M.tolist():
        tokens.append(np.concatenate([[START], molecules[m], [END]]).astype(np.int64))
        first_M[m] = at + 1
        at += len(tokens[-1])
    sizes, counts = np.unique(length_M, return_counts=True)
    return Packed(
        torch.from_numpy(np.concatenate(tokens)),
        torch.from_numpy(np.concatenate([np.arange(len(each)) for each in tokens])),
        tuple((int(count), int(size) + 2) for size, count in zip(sizes, counts, strict=True)),
        torch.from_numpy(np.concatenate([np.arange(size) for size in length_M]) + np.repeat(first_M, length_M)),
        tuple(length_M.tolist()),
    )


class Layer(nn.Module):
    """A transformer layer, normalised before attention and before the dense layers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.dense_norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, WIDER * width, bias=False)
        self.narrow = nn.Linear(WIDER * width, width, bias=False)

    def forward(self, x_TD: Tensor, turn_TE: Tensor, blocks: Blocks) -> Tensor:
        """One layer; tokens see those of their own molecule."""
        x_TD = x_TD + self.out(self._attended(self.attention_norm(x_TD), turn_TE, blocks))
        return x_TD + self.narrow(functional.gelu(self.widen(self.dense_norm(x_TD))))  # type: ignore[no-any-return]

    def _attended(self, x_TD: Tensor, turn_TE: Tensor, blocks: Blocks) -> Tensor:
        width = x_TD.shape[1]
        each = width // self.heads
        sizes = [count * size for count, size in blocks]
        # Splitting, not slicing: the gradient of a slice is a whole tensor of zeros.
        turning, value = torch.split(self.query_key_value(x_TD), [2 * width, width], dim=1)
        turned = rotated(turning.reshape(-1, 2 * self.heads, each), turn_TE).flatten(1)
        found = []
        for (count, size), of_block, values in zip(
            blocks, torch.split(turned, sizes), torch.split(value, sizes), strict=True
        ):
            shape = (count, size, self.heads, each)
            parts = (*torch.split(of_block, width, dim=1), values)
            query, key, value = (part.reshape(shape).transpose(1, 2) for part in parts)
            attended = functional.scaled_dot_product_attention(query, key, value)
            found.append(attended.transpose(1, 2).reshape(-1, width))
        return torch.cat(found)


def rotated(x_THE: Tensor, turn_TE: Tensor) -> Tensor:
    """Rotary positions: each two units of a head are turned, as a complex number, by an angle that grows with position.

    Parameters
    ----------
    x_THE
        Queries or keys.
    turn_TE
        Complex numbers of length 1, half as many as units of a head.
    """
    pairs = torch.view_as_complex(x_THE.reshape(*x_THE.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turn_TE[:, None]).flatten(-2)


def turns(position_T: Tensor, frequency_E: Tensor) -> Tensor:
    """The complex numbers that positions turn by, shape (token, frequency)."""
    angle_TE = position_T[:, None] * frequency_E
    return torch.polar(torch.ones_like(angle_TE), angle_TE)


class Encoder(nn.Module):
    """Embeddings of bases, and the four bases' logits for masked language modelling."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.width = size.width
        self.embedding = nn.Embedding(len(TOKENS), size.width)
        self.layers = nn.ModuleList([Layer(size.width, size.heads) for _ in range(size.layers)])
        self.norm = nn.LayerNorm(size.width)
        self.predict = nn.Linear(size.width, KNOWN)
        half = size.width // size.heads // 2
        self.register_buffer("frequency_E", THETA ** (-torch.arange(half) / half), persistent=False)
        self.frequency_E: Tensor

    def forward(self, packed: Packed) -> Tensor:
        """Embeddings of the bases, shape (base, unit): the ends are taken off."""
        *_, last_TD = self._outputs(packed)
        embedded: Tensor = self.norm(last_TD[packed.base_B])
        return embedded

    def hidden(self, packed: Packed) -> Iterator[Tensor]:
        """Embedding and output of each layer at the bases, before the last norm."""
        for x_TD in self._outputs(packed):
            yield x_TD[packed.base_B]

    def _outputs(self, packed: Packed) -> Iterator[Tensor]:
        x_TD = self.embedding(packed.token_T)
        turn_TE = turns(packed.position_T, self.frequency_E)
        yield x_TD
        for layer in self.layers:
            x_TD = layer(x_TD, turn_TE, packed.blocks)
            yield x_TD


@torch.no_grad()
def initialise(module: nn.Module, rng: np.random.Generator) -> None:
    """Draw new weights: matrices with a standard deviation of (inputs)^-0.5, embeddings 1, scales 1, biases 0.

    What a layer adds is scaled by (2 layers)^-0.5, so that a base can still be told from its embedding at the end: else
    a head cannot learn from a random encoder. A fixed small deviation, as 0.02 for large models, leaves a small one on
    the plateau of the bases' frequencies.
    """
    for part in module.modules():
        if isinstance(part, nn.LayerNorm):
            part.reset_parameters()
            continue
        for weight in part.parameters(recurse=False):
            if weight.dim() < 2:
                weight.zero_()
                continue
            deviation = 1.0 if isinstance(part, nn.Embedding) else weight[0].numel() ** -0.5
            weight.copy_(torch.from_numpy(rng.standard_normal(tuple(weight.shape), dtype=np.float32) * deviation))
    layers = [part for part in module.modules() if isinstance(part, Layer)]
    for layer in layers:
        for adds in (layer.out, layer.narrow):
            adds.weight.mul_((2 * len(layers)) ** -0.5)
