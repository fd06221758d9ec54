"""Encoders from a local folder: one embedding a base, and errors that say what is missing."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor, nn

from stages import artifacts
from stages.errors import DataError, UsageError
from stages.rna import alphabet
from stages.rna.alphabet import END, START, TOKENS
from stages.systems.rna_transfer import corpus, local_models, train
from stages.systems.rna_transfer.encoder import pack
from stages.systems.rna_transfer.local_models import LocalEncoder, open_local
from tests.systems.rna_transfer.small import accepted, settings


class Echo(nn.Module):
    """Says of each token its number and how many tokens its molecule has."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        assert attention_mask.all()
        length = torch.full_like(input_ids, input_ids.shape[1])
        return SimpleNamespace(last_hidden_state=torch.stack([input_ids, length], dim=-1).float())


def vocabulary(start: int, end: int) -> Tensor:
    numbers = torch.full((len(TOKENS),), -1)
    numbers[4:] = torch.tensor([10, 11, 12, 13, 14])
    numbers[START], numbers[END] = start, end
    return numbers


@pytest.mark.parametrize(("start", "end", "extra"), [(1, 2, 2), (1, -1, 1), (-1, -1, 0)])
def test_five_bases_give_five_embeddings_whatever_ends_a_model_has(start: int, end: int, extra: int) -> None:
    encoder = LocalEncoder(Echo(), vocabulary(start, end), 2)
    packed = pack([alphabet.encode(each) for each in ("ACGUU", "N", "GGGCC")])
    found = encoder(packed)
    assert found[:, 0].tolist() == [10, 11, 12, 13, 13, 14, 12, 12, 12, 11, 11]
    assert found[:, 1].tolist() == [5 + extra] * 5 + [1 + extra] + [5 + extra] * 5


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"config\.json: found no such file; expected a model that multimolecule"):
        open_local(tmp_path)


def test_without_the_library_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "multimolecule", None)
    with pytest.raises(UsageError, match=r"multimolecule is not installed\. Install multimolecule beside this project"):
        open_local(tmp_path)


class Tokenizer:
    """A vocabulary that gives a text these numbers."""

    unk_token_id = 3

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers

    def __call__(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": self.numbers}

    def convert_tokens_to_ids(self, base: str) -> int:
        return 10 + "ACGUN".index(base)


def test_a_vocabulary_of_single_bases_is_read(tmp_path: Path) -> None:
    found = local_models._vocabulary(Tokenizer([1, 10, 11, 12, 13, 14, 2]), tmp_path)
    assert torch.equal(found, vocabulary(1, 2))
    assert torch.equal(local_models._vocabulary(Tokenizer([10, 11, 12, 13, 14]), tmp_path), vocabulary(-1, -1))


@pytest.mark.parametrize("numbers", [[1, 40, 41, 2], [1, 1, 10, 11, 12, 13, 14, 2], [10, 11, 12, 13, 14, 2, 2]])
def test_k_mers_and_longer_ends_are_refused(tmp_path: Path, numbers: list[int]) -> None:
    with pytest.raises(DataError, match="expected one token a base, with at most one before and one behind"):
        local_models._vocabulary(Tokenizer(numbers), tmp_path)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A tiny RNA-FM with random weights, saved as its library does."""
    library = pytest.importorskip("multimolecule")
    torch.manual_seed(0)
    tokenizer = library.RnaTokenizer()
    config = library.RnaFmConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    folder = tmp_path / "rnafm"
    library.RnaFmModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
@torch.no_grad()
def test_a_saved_model_gives_what_its_library_gives(saved: Path) -> None:
    from transformers import AutoTokenizer

    encoder = open_local(saved)
    tokenizer = AutoTokenizer.from_pretrained(str(saved))
    texts = ["ACGUU", "GGGAAACCC", "UNACG"]
    together = torch.split(encoder(pack([alphabet.encode(text) for text in texts])), [len(text) for text in texts])
    for text, found in zip(texts, together, strict=True):
        wanted = encoder.model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 1:-1]
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), atol=1e-5)


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
def test_a_saved_model_is_a_further_row_of_the_study(
    saved: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts.ingested("rna", "made").mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(corpus.rna, "open_set", lambda keys: accepted())
    asked = settings(local_models=[{"name": "rnafm", "path": saved}], tasks=["base_pairs", "paired"])
    hashes = []
    for _ in range(2):
        train.run(train.Params(train=asked), name="rna_transfer", key="0")
        hashes.append(artifacts.sha256_tree(artifacts.model("rna_transfer", 0)))
    assert hashes[0] == hashes[1]
    folder = artifacts.model("rna_transfer", 0)
    mine = pl.read_parquet(folder / "predictions.parquet").filter(model="rnafm", task="paired")
    arms = {"random", "random_frozen", "fine_tuned", "frozen", "shuffled"}
    assert set(mine["arm"]) == arms
    assert set(mine.filter(tokens=-1)["arm"]) == {"fine_tuned", "frozen", "shuffled"}
    assert mine.group_by("arm").len()["len"].n_unique() == 1
    moved = pl.read_parquet(folder / "geometry.parquet").filter(
        pl.col("layer").is_null(), model="rnafm", task="paired", measure="distance"
    )
    assert set(moved["arm"]) == {"random", "fine_tuned", "shuffled"}
    assert moved["value"].min() > 0
    told = artifacts.read_json(folder / "config.json")["learnt"]
    assert told["local"]["rnafm"]["type"] == "rnafm"
    assert told["tasks"]["paired"]["head_parameters"]["rnafm"] == 17
