"""The corpus on disk: SEED's layout, equal bytes, and the same reader as for SEED."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import yaml

from stages import manifest, raw
from stages.errors import StageError, UsageError
from stages.ingest.eeg.config import Seed
from stages.ingest.eeg.trials import open_corpus
from stages.simulate.eeg import corpus, matfile, population, stage
from stages.simulate.eeg.options import Design, Simulation

SMALL = Simulation(seed=5, design=Design(subjects=2, sessions=2, trials=6, seconds=(4, 5)))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    corpus.write(folder, SMALL)
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*.mat")}


def test_the_layout_is_that_of_seed(written: Path) -> None:
    names = sorted(path.name for path in (written / "Preprocessed_EEG").iterdir())
    assert names == ["1_20000101.mat", "1_20000108.mat", "2_20000102.mat", "2_20000109.mat", "label.mat"]
    label = scipy.io.loadmat(written / "Preprocessed_EEG" / "label.mat")["label"]
    assert label.shape == (1, 6)
    assert sorted(label[0]) == [-1, -1, 0, 0, 1, 1]
    first, second = (scipy.io.whosmat(written / "Preprocessed_EEG" / name) for name in (names[0], names[2]))
    assert [name for name, _, _ in first] == [f"{population.initials(1)}_eeg{trial}" for trial in range(1, 7)]
    assert [name for name, _, _ in second] == [f"{population.initials(2)}_eeg{trial}" for trial in range(1, 7)]
    assert [shape for _, shape, _ in first] == [(62, samples) for samples in corpus.durations(SMALL)]
    assert len({shape for _, shape, _ in first}) > 1


def test_equal_options_give_equal_bytes_and_another_seed_others(written: Path, tmp_path: Path) -> None:
    corpus.write(tmp_path / "again", SMALL)
    assert digests(tmp_path / "again") == digests(written)
    corpus.write(tmp_path / "other", SMALL.model_copy(update={"seed": 6}))
    assert not set(digests(tmp_path / "other").values()) & set(digests(written).values())


def test_the_reader_of_seed_reads_it(written: Path) -> None:
    opened = open_corpus(written, Seed(reader="seed"))
    assert opened.corpus.subjects == ("1", "2")
    labels = scipy.io.loadmat(written / "Preprocessed_EEG" / "label.mat")["label"][0]
    for _, trials in opened:
        assert [(trial.session, trial.trial) for trial in trials] == [(s, t) for s in "12" for t in range(1, 7)]
        assert [trial.label_value for trial in trials] == [*labels, *labels]
        signal = trials[0].signal
        assert signal is not None
        assert signal().shape == (62, corpus.durations(SMALL)[0])
        assert 1 < np.median(signal().std(axis=1)) < 100


def test_a_mat_file_holds_no_time(tmp_path: Path) -> None:
    arrays = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    matfile.write(tmp_path / "x.mat", arrays)
    content = (tmp_path / "x.mat").read_bytes()
    assert content[:116] == b"MATLAB 5.0 MAT-file, simulated by braid".ljust(116)
    assert content[124:128] == b"\x00\x01IM"
    np.testing.assert_array_equal(scipy.io.loadmat(tmp_path / "x.mat")["x"], arrays["x"])


def write_params(block: dict[str, object]) -> None:
    Path("params.yaml").write_text(yaml.safe_dump({"eeg": {"simulated": {"small": block}}}))


def test_the_stage_writes_a_manifest_that_says_simulator(workspace: Path) -> None:
    write_params({"seed": 5, "design": SMALL.design.model_dump(mode="json")})
    stage.run(stage.Params.read(name="eeg", key="small"), name="eeg", key="small")
    found = manifest.verify(Path("data/raw/small"))
    assert (found.kind, found.source) == ("simulator", "small")
    assert (found.origin["module"], found.origin["seed"]) == ("stages.simulate.eeg", 5)
    assert found.origin["options"] == SMALL.model_dump(mode="json", exclude={"seed"})
    assert len(found.files) == 5
    assert all(path.stat().st_mode & 0o777 == 0o444 for path in Path("data/raw/small").rglob("*.mat"))


def test_an_unknown_option_is_named(workspace: Path) -> None:
    write_params({"seed": 5, "emotion": {"couplng": 1}})
    with pytest.raises(UsageError, match=r"eeg.simulated.small.emotion.couplng is not a known key; did you mean 'coup"):
        stage.Params.read(name="eeg", key="small")


def nothing(folder: Path) -> None: ...


def half(folder: Path) -> None:
    (folder / "half.txt").write_text("half")
    raise StageError("the program stopped")


@pytest.mark.parametrize(
    ("program", "message"), [(nothing, "toy: stages.toy wrote no file"), (half, "the program stopped")]
)
def test_a_simulator_that_fails_leaves_nothing(workspace: Path, program: Callable[[Path], None], message: str) -> None:
    with pytest.raises(StageError, match=message):
        raw.simulate("toy", program, module="stages.toy", seed=0, options={})
    assert not Path("data/raw/toy").exists()
