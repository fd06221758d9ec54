"""The network: patches of each series through a small transformer, neighbours, and two heads.

Every weight is shared by all sensors, so one state dict serves 214 roads and 40 lanes alike.

Shape suffixes: B window, S sensor, L step of the context, H step of the horizon, P patch, W step of a patch, M token
(patches and the context token), D unit, F feature of the context token, K neighbour, A attention head, N series
(window x sensor).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.systems.minitraffic.clustering import Graph
from stages.systems.minitraffic.patches import Normalised, patch_count, patches
from stages.systems.minitraffic.settings import Network

#: Mean and standard deviation of the window in the set's scale, and the clock: sine, cosine, whether there is one.
CONTEXT_FEATURES = 5
PROJECTION = 16


class Neighbours(NamedTuple):
    """A graph on the device of the network: places of neighbours and which are there, shape (sensor, neighbour)."""

    place_SK: Tensor
    there_SK: Tensor


def device() -> torch.device:
    """The GPU that the environment gives, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def neighbours_on(graph: Graph, place: torch.device) -> Neighbours:
    """Put a graph on a device."""
    return Neighbours(torch.from_numpy(graph.neighbour_SK).to(place), torch.from_numpy(graph.there_SK).to(place))


class Layer(nn.Module):
    """A transformer layer, normalised before attention and before the dense layers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attended = nn.Linear(width, width)
        self.before_dense = nn.LayerNorm(width)
        self.dense = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x_NMD: Tensor) -> Tensor:
        """Tokens of each series attend to each other."""
        series, tokens, width = x_NMD.shape
        mixed = self.query_key_value(self.before_attention(x_NMD))
        query, key, value = mixed.reshape(series, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended_NAMD = functional.scaled_dot_product_attention(query, key, value)
        x_NMD = x_NMD + self.attended(attended_NAMD.transpose(1, 2).reshape(series, tokens, width))
        return torch.as_tensor(x_NMD + self.dense(self.before_dense(x_NMD)))


class GraphAttention(nn.Module):
    """What the neighbours of a series have that it lacks, weighted by attention: cost O(kN), zero when new.

    Values are *differences* to the series itself, so neighbours that are all alike change nothing: identical lanes
    have the forecast of their road.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x_BSD: Tensor, graph: Neighbours) -> Tensor:
        """Add what the neighbours tell."""
        beside_BSKD = self.key(x_BSD)[:, graph.place_SK]
        score_BSK = (self.query(x_BSD)[:, :, None] * beside_BSKD).sum(dim=-1) / math.sqrt(x_BSD.shape[-1])
        score_BSK = score_BSK.masked_fill(~graph.there_SK, -1e9)
        weight_BSK = score_BSK.softmax(dim=-1) * graph.there_SK
        value_BSD = self.value(x_BSD)
        told_BSD = (weight_BSK[..., None] * value_BSD[:, graph.place_SK]).sum(dim=2)
        total_BS1 = weight_BSK.sum(dim=-1, keepdim=True)  # 0 for a series without a neighbour
        return torch.as_tensor(x_BSD + self.out(told_BSD - total_BS1 * value_BSD))


class MiniTraffic(nn.Module):
    """The network; see :meth:`forward` for the forecast and :meth:`reconstruct` for masked patches."""

    def __init__(self, network: Network, context: int, horizon: int) -> None:
        super().__init__()
        self.patch, self.stride, self.width = network.patch, network.stride, network.width
        count, width = patch_count(context, network.patch, network.stride), network.width
        self.embedding = nn.Linear(2 * network.patch, width)
        self.context_token = nn.Linear(CONTEXT_FEATURES, width)
        self.position = nn.Parameter(torch.zeros(count, width))
        self.mask_token = nn.Parameter(torch.zeros(width))
        self.layers = nn.ModuleList(Layer(width, network.heads) for _ in range(network.layers))
        self.after = nn.LayerNorm(width)
        self.reconstruction = nn.Linear(width, network.patch)
        self.reduction_head = nn.Sequential(nn.Linear((count + 1) * width, width), nn.GELU())
        self.projection = nn.Linear(width, PROJECTION)
        self.graph = GraphAttention(width)
        self.adaptive_head = nn.Linear(width, horizon)

    def encode(self, seen: Normalised, features_BSF: Tensor, mask_BSP: Tensor | None = None) -> Tensor:
        """Tokens of each window and sensor, shape (window, sensor, token, unit); the last is the context token."""
        both = torch.cat(
            [
                patches(seen.x_BSL, self.patch, self.stride),
                patches(seen.there_BSL.to(seen.x_BSL.dtype), self.patch, self.stride),
            ],
            dim=-1,
        )
        x_BSPD = self.embedding(both)
        if mask_BSP is not None:
            x_BSPD = torch.where(mask_BSP[..., None], self.mask_token, x_BSPD)
        token_BS1D = self.context_token(features_BSF)[:, :, None]
        x_BSMD = torch.cat([x_BSPD + self.position, token_BS1D], dim=2)
        x_NMD = x_BSMD.flatten(0, 1)
        for layer in self.layers:
            x_NMD = layer(x_NMD)
        return torch.as_tensor(self.after(x_NMD).reshape(x_BSMD.shape))

    def reconstruct(self, token_BSMD: Tensor) -> Tensor:
        """Patches in normalised units, shape (window, sensor, patch, step of the patch)."""
        return torch.as_tensor(self.reconstruction(token_BSMD[:, :, :-1]))

    def represent(self, token_BSMD: Tensor) -> Tensor:
        """One vector of each window and sensor, by the reduction head."""
        return torch.as_tensor(self.reduction_head(token_BSMD.flatten(2)))

    def project(self, x_BSD: Tensor) -> Tensor:
        """What InfoNCE compares and the graph is built on, shape (window, sensor, unit)."""
        return torch.as_tensor(self.projection(x_BSD))

    def forecast(self, x_BSD: Tensor, seen: Normalised, graph: Neighbours | None) -> Tensor:
        """Forecast out of representations, in the data's unit: last value + standard deviation x adaptive head."""
        if graph is not None:
            x_BSD = self.graph(x_BSD, graph)
        return torch.as_tensor(seen.last_BS[..., None] + seen.sd_BS[..., None] * self.adaptive_head(x_BSD))

    def forward(self, seen: Normalised, features_BSF: Tensor, graph: Neighbours | None = None) -> Tensor:
        """Forecast of windows in the data's unit, shape (window, sensor, step of the horizon)."""
        return self.forecast(self.represent(self.encode(seen, features_BSF)), seen, graph)


def features(seen: Normalised, clock_BF: Tensor, level: float, scale: float) -> Tensor:
    """What the context token knows, shape (window, sensor, feature).

    Parameters
    ----------
    seen
        Normalised windows.
    clock_BF
        Sine and cosine of the time of day at the end of the context, and 1; three zeros where a set has no clock.
    level, scale
        Typical mean and standard deviation of the set, in the data's unit.
    """
    own = torch.stack([(seen.mean_BS - level) / scale, seen.sd_BS / scale], dim=-1)
    return torch.cat([own, clock_BF[:, None].expand(-1, own.shape[1], -1)], dim=-1)


def initialise(network: MiniTraffic, rng: np.random.Generator) -> None:
    """Draw the weights in place: uniform within 1 / sqrt(inputs), biases 0; the head and the graph's output are 0.

    A new network therefore forecasts the last value.
    """
    zero = {"adaptive_head.weight", "graph.out.weight"}
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if weight.ndim == 1 and "mask_token" not in name:
                weight.fill_(1.0 if "weight" in name else 0.0)  # layer norms, biases
            elif name in zero:
                weight.zero_()
            else:
                bound = 1 / math.sqrt(weight.shape[-1])
                drawn = rng.uniform(-bound, bound, tuple(weight.shape)).astype(np.float32)
                weight.copy_(torch.from_numpy(drawn))


def parameter_count(network: nn.Module) -> int:
    """Number of learned weights."""
    return sum(weight.numel() for weight in network.parameters())
