"""The network: a small image encoder, a sentence reader, and a decoder that guidance steers (SESM).

Shape suffixes: B sentence, L word, C channel, H W pixels of a level, D unit of a word, G guidance token, N pixel of a
level (H x W). The guidance map s is in [0, 1]; it begins as the prior and moves to what the network predicts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.systems.l2l.settings import Guidance, Network

#: Below this, the weight by which features are pooled counts as none.
FAINT = 1e-4
#: Log odds that a level with maps adds for a sure guidance map, at the start.
TRUST = 4.0
#: Levels of the decoder by how much smaller they are than the image, coarsest first.
LEVELS = ("level8", "level4", "level2")


class Answer(NamedTuple):
    """What the network answers.

    Attributes
    ----------
    logit_BHW
        Log odds of each pixel, at the side of the image.
    level_BHW
        Log odds of the coarser levels, coarsest first.
    guidance_BHW
        The guidance map after the last level.
    """

    logit_BHW: Tensor
    level_BHW: list[Tensor]
    guidance_BHW: Tensor


def device() -> torch.device:
    """The GPU that the environment gives, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Reader(nn.Module):
    """Words of a sentence in their order, and the sentence as a whole."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.both_ways = nn.GRU(width, width // 2, batch_first=True, bidirectional=True)

    def forward(self, word_BL: Tensor) -> tuple[Tensor, Tensor]:
        """Units of each word (B, L, D), 0 where there is none, and their mean (B, D)."""
        there_BL1 = (word_BL > 0).to(torch.float32)[..., None]
        read_BLD = self.both_ways(self.embedding(word_BL))[0] * there_BL1
        return read_BLD, read_BLD.sum(dim=1) / there_BL1.sum(dim=1).clamp(min=1)


class Block(nn.Module):
    """A convolution, normalised by groups of channels, and moved by the sentence where it is told one."""

    def __init__(self, into: int, out: int, groups: int, *, stride: int = 1, words: int = 0) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(into, out, 3, stride, 1, bias=False)
        self.norm = nn.GroupNorm(groups, out)
        self.move = nn.Linear(words, 2 * out) if words else None

    def forward(self, x_BCHW: Tensor, sentence_BD: Tensor | None = None) -> Tensor:
        """Features of the next level."""
        found = self.norm(self.convolution(x_BCHW))
        if self.move is not None and sentence_BD is not None:
            scale_BC, shift_BC = self.move(sentence_BD).chunk(2, dim=1)
            found = found * (1 + scale_BC[..., None, None]) + shift_BC[..., None, None]
        return functional.relu(found)


class Steering(nn.Module):
    """One level of SESM: features attend to words and to the features that the guidance map points at."""

    def __init__(self, channels: int, words: int) -> None:
        super().__init__()
        self.query = nn.Linear(channels, words, bias=False)
        self.key_value = nn.Linear(words, words + channels)
        self.pooled = nn.Linear(channels, words)

    def forward(self, x_BCHW: Tensor, read_BLD: Tensor, there_BL: Tensor, guidance_B1HW: Tensor) -> Tensor:
        """What is added to the features, (B, C, H, W)."""
        x_BNC = x_BCHW.flatten(2).transpose(1, 2)
        pooled_BC, pointed_B = pool(x_BCHW, guidance_B1HW)
        token_BGD = torch.cat([read_BLD, self.pooled(pooled_BC)[:, None]], dim=1)
        there_BG = torch.cat([there_BL, pointed_B[:, None]], dim=1)
        key_BGD, value_BGC = self.key_value(token_BGD).split([read_BLD.shape[2], x_BCHW.shape[1]], dim=2)
        score_BNG = self.query(x_BNC) @ key_BGD.transpose(1, 2) / math.sqrt(key_BGD.shape[2])
        weight_BNG = score_BNG.masked_fill(~there_BG[:, None], -1e4).softmax(dim=2)
        added_BCN: Tensor = (weight_BNG @ value_BGC).transpose(1, 2)
        return added_BCN.reshape(x_BCHW.shape)


def pool(x_BCHW: Tensor, weight_B1HW: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of the features by a map (B, C), and whether the map points anywhere (B)."""
    total_B1 = weight_B1HW.sum(dim=(2, 3))
    return (x_BCHW * weight_B1HW).sum(dim=(2, 3)) / total_B1.clamp(min=FAINT), total_B1[:, 0] > FAINT


class L2l(nn.Module):
    """The network; ``guidance`` says how much of SESM it has."""

    def __init__(self, sizes: Network, vocabulary: int, guidance: Guidance) -> None:
        super().__init__()
        fine, middle, coarse = sizes.widths
        self.guidance, self.rho = guidance, sizes.rho
        groups, words = sizes.groups, sizes.words
        self.reader = Reader(vocabulary, words)
        self.level2 = nn.ModuleList([Block(5, fine, groups, stride=2), Block(fine, fine, groups)])
        self.level4 = nn.ModuleList([Block(fine, middle, groups, stride=2), Block(middle, middle, groups)])
        self.level8 = nn.ModuleList([Block(middle, coarse, groups, stride=2), Block(coarse, coarse, groups)])
        shown = 2 + (1 if guidance == "maps" else 0)
        widths = {"level8": (coarse, coarse), "level4": (coarse + middle, middle), "level2": (middle + fine, fine)}
        self.decoder = nn.ModuleDict(
            {name: Block(into + shown, out, groups, words=words) for name, (into, out) in widths.items()}
        )
        steered = {} if guidance == "none" else {name: Steering(out, words) for name, (_, out) in widths.items()}
        self.steering = nn.ModuleDict(steered)
        self.head = nn.ModuleDict({name: nn.Conv2d(out, 1, 1) for name, (_, out) in widths.items()})
        self.pixels = nn.Conv2d(fine, 4, 1)
        # With maps, a level's answer starts from the guidance map, and its features say what to change.
        self.trust = nn.Parameter(torch.full((len(LEVELS) + 1,), TRUST)) if guidance == "maps" else None

    def forward(self, image_BCHW: Tensor, word_BL: Tensor, prior_BHW: Tensor) -> Answer:
        """Answer sentences.

        Parameters
        ----------
        image_BCHW
            Red, green, blue in [0, 1].
        word_BL
            Places of words in the vocabulary, 0 where there is none.
        prior_BHW
            The prior s0 in [0, 1]; what the guidance begins with.
        """
        read_BLD, sentence_BD = self.reader(word_BL)
        features = self.features(image_BCHW)
        guidance_B1HW, levels = prior_BHW[:, None], []
        x_BCHW = features["level8"]
        for level, name in enumerate(LEVELS):
            if name != "level8":
                up = functional.interpolate(x_BCHW, scale_factor=2.0, mode="nearest")
                x_BCHW = torch.cat([up, features[name]], dim=1)
            here_B1HW = functional.interpolate(guidance_B1HW, size=x_BCHW.shape[2:], mode="area")
            # Words say where: each level is told the places, and the map, beside the features that words then move.
            shown = [x_BCHW, places(x_BCHW), *([here_B1HW] if self.guidance == "maps" else [])]
            x_BCHW = torch.cat(shown, dim=1)
            x_BCHW = self.decoder[name](x_BCHW, sentence_BD)
            if self.guidance != "none":
                x_BCHW = x_BCHW + self.steering[name](x_BCHW, read_BLD, word_BL > 0, here_B1HW)
            logit_B1HW = self.head[name](x_BCHW)
            if self.trust is not None:
                logit_B1HW = logit_B1HW + self.trust[level] * (2 * here_B1HW - 1)
            levels.append(logit_B1HW[:, 0])
            said_B1HW = functional.interpolate(
                torch.sigmoid(logit_B1HW), size=prior_BHW.shape[1:], mode="bilinear", align_corners=False
            )
            guidance_B1HW = self.rho * guidance_B1HW + (1 - self.rho) * said_B1HW
        up = functional.interpolate(logit_B1HW, scale_factor=2.0, mode="bilinear", align_corners=False)
        fine_B1HW = up + functional.pixel_shuffle(self.pixels(x_BCHW), 2)
        if self.trust is not None:
            fine_B1HW = fine_B1HW + self.trust[-1] * (2 * prior_BHW[:, None] - 1)
        return Answer(fine_B1HW[:, 0], levels, guidance_B1HW[:, 0])

    def features(self, image_BCHW: Tensor) -> dict[str, Tensor]:
        """Features of the encoder by level; two channels tell where a pixel is."""
        x = torch.cat([image_BCHW * 2 - 1, places(image_BCHW)], dim=1)
        found = {}
        for name in reversed(LEVELS):
            for block in getattr(self, name):
                x = block(x)
            found[name] = x
        return found


def places(image_BCHW: Tensor) -> Tensor:
    """Row and column of each pixel from -1 to 1, (B, 2, H, W)."""
    batch, _, height, width = image_BCHW.shape
    row_H = torch.linspace(-1, 1, height, device=image_BCHW.device)
    column_W = torch.linspace(-1, 1, width, device=image_BCHW.device)
    place_2HW = torch.stack(torch.meshgrid(row_H, column_W, indexing="ij"))
    return place_2HW.expand(batch, 2, height, width)


def initialise(network: nn.Module, rng: np.random.Generator) -> None:
    """Draw the weights: He for convolutions, Glorot for what is dense; biases 0, norms 1, words of deviation 1."""
    with torch.no_grad():
        for module in network.modules():
            for weight in module.parameters(recurse=False):
                if isinstance(module, nn.GroupNorm | L2l):
                    continue
                if isinstance(module, nn.Embedding):
                    weight.copy_(torch.from_numpy(rng.normal(size=tuple(weight.shape))))
                    weight[0] = 0
                elif weight.ndim == 1:
                    weight.zero_()
                else:
                    into = weight[0].numel()
                    scale = math.sqrt(2 / into if weight.ndim == 4 else 2 / (into + weight.shape[0]))
                    weight.copy_(torch.from_numpy(scale * rng.normal(size=tuple(weight.shape))))
