"""Encoders of the multimolecule library from a local folder, with the interface of our own.

The library is an option: it is imported where a local model is named in params.yaml, and nowhere else.

Shape suffixes: T token, B base, D unit, M molecule, L token of a molecule with its ends.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from stages.errors import DataError, UsageError
from stages.rna.alphabet import END, FIRST_BASE, START, TOKENS
from stages.runtime import random_numbers
from stages.systems.rna_transfer.encoder import Packed

#: Bases of which the tokenizer's numbers are asked for.
BASES = TOKENS[FIRST_BASE:]


class LocalEncoder(nn.Module):
    """A model of the library and its vocabulary.

    Parameters
    ----------
    model
        Gives ``last_hidden_state`` for ``input_ids``, shape (molecule, token, unit).
    vocabulary_T
        The library's number for each token of stages/rna/alphabet.py; -1 where the model has no such token.
    width
        Units of an embedding.
    """

    def __init__(self, model: nn.Module, vocabulary_T: Tensor, width: int) -> None:
        super().__init__()
        self.model, self.width = model, width
        self.register_buffer("vocabulary_T", vocabulary_T, persistent=False)
        self.vocabulary_T: Tensor

    def forward(self, packed: Packed) -> Tensor:
        """Embeddings of the bases, shape (base, unit): what the model says of the ends is taken off."""
        number_T = self.vocabulary_T[packed.token_T]
        found, first = [], 0
        for count, size in packed.blocks:
            number_ML = number_T[first : first + count * size].view(count, size)
            first += count * size
            keep = number_ML[0] >= 0
            ids_ML = number_ML[:, keep]
            hidden_MLD = self.model(input_ids=ids_ML, attention_mask=torch.ones_like(ids_ML)).last_hidden_state
            whole_MLD = hidden_MLD.new_zeros(count, size, self.width)
            whole_MLD[:, keep] = hidden_MLD
            found.append(whole_MLD.view(-1, self.width))
        return torch.cat(found)[packed.base_B]


def open_local(path: Path) -> LocalEncoder:
    """Open a model as its ``save_pretrained`` wrote it.

    Raises
    ------
    UsageError
        The library is not installed.
    DataError
        The folder holds no model of the library, or its tokenizer does not give one token a base.
    """
    folder = Path(path)
    if not (folder / "config.json").is_file():
        raise DataError(
            folder / "config.json",
            found="no such file",
            expected="a model that multimolecule's save_pretrained wrote",
            remedy="Correct its path in systems.rna_transfer.train.local_models.",
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import multimolecule  # type: ignore[import-not-found]  # noqa: F401 (its models get known to transformers)
            from transformers import AutoModel, AutoTokenizer  # type: ignore[import-not-found]
    except ImportError as error:
        raise UsageError(
            f"systems.rna_transfer.train.local_models: {error.name or error} is not installed. "
            "Install multimolecule beside this project, or set local_models to []."
        ) from None
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        model = AutoModel.from_pretrained(str(folder), local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            folder,
            found=" ".join(str(error).split()),
            expected="weights and tokenizer of a model of multimolecule",
            remedy="Save both with save_pretrained into this folder.",
        ) from None
    return LocalEncoder(model, _vocabulary(tokenizer, folder), int(model.config.hidden_size))


def _vocabulary(tokenizer: Any, folder: Path) -> Tensor:
    """The library's number of each of our tokens; -1 for an end that the model has no token for."""
    text = "".join(BASES)
    numbers = list(tokenizer(text)["input_ids"])
    singles = [int(tokenizer.convert_tokens_to_ids(base)) for base in BASES]
    at = next((place for place in range(len(numbers)) if numbers[place : place + len(singles)] == singles), None)
    extra = len(numbers) - len(singles)
    if at is None or at > 1 or extra - at > 1 or tokenizer.unk_token_id in singles[:4]:
        raise DataError(
            folder,
            found=f"the tokens {numbers} for {text}",
            expected="one token a base, with at most one before and one behind",
            remedy="Only encoders of single bases can be compared; k-mer and codon models cannot.",
        )
    vocabulary = torch.full((len(TOKENS),), -1, dtype=torch.long)
    vocabulary[FIRST_BASE:] = torch.tensor(singles)
    if at == 1:
        vocabulary[START] = numbers[0]
    if extra - at == 1:
        vocabulary[END] = numbers[-1]
    return vocabulary


def renewed(encoder: LocalEncoder, seed: int) -> dict[str, Tensor]:
    """Random weights for a local model, as its library draws them, under a seed."""
    drawn = int(random_numbers(seed, "local model").integers(2**31))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(drawn)
        fresh = type(encoder.model)(encoder.model.config)
    return {f"model.{name}": value for name, value in fresh.state_dict().items()}


def described(encoder: LocalEncoder, path: Path) -> dict[str, Any]:
    """What config.json says of a local model."""
    about = json.loads((Path(path) / "config.json").read_text(encoding="utf-8"))
    return {
        "type": about.get("model_type"),
        "width": encoder.width,
        "parameters": int(np.sum([weight.numel() for weight in encoder.parameters()])),
    }
