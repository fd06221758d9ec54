from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages import manifest
from stages.errors import DataError

#: sha256 of b"" and of b"abc": the examples of FIPS 180.
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.fixture
def tower(workspace: Path) -> Path:
    """A user's folder with data, and with what is none."""
    folder = Path("tower")
    (folder / "2015").mkdir(parents=True)
    (folder / "b.csv").write_bytes(b"abc")
    (folder / "2015" / "a.csv").write_bytes(b"")
    for name in (".DS_Store", "b.csv.dvc", "manifest.json"):
        (folder / name).write_text("no data")
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("no data")
    return folder


def test_a_users_folder(tower: Path) -> None:
    found = manifest.of_path(tower, "mine", licence="CC0-1.0")
    assert found == manifest.Manifest(
        source="mine",
        kind="path",
        origin={"path": "tower"},
        files=(
            manifest.File(name="2015/a.csv", bytes=0, sha256=EMPTY),
            manifest.File(name="b.csv", bytes=3, sha256=ABC),
        ),
        licence="CC0-1.0",
    )
    assert found.bytes == 3
    manifest.verify(tower, found)


def test_a_users_file(tower: Path) -> None:
    found = manifest.of_path(tower / "b.csv", "mine")
    assert found.origin == {"path": "tower/b.csv"}
    assert found.files == (manifest.File(name="b.csv", bytes=3, sha256=ABC),)
    manifest.verify(tower / "b.csv", found)
    (tower / "b.csv").write_bytes(b"abd")
    with pytest.raises(DataError, match=r"b.csv with sha256 [0-9a-f]{64} instead of " + ABC):
        manifest.verify(tower / "b.csv", found)


def test_line_endings_are_content(workspace: Path) -> None:
    digests = set()
    for content in (b"a\r\nb\r\n", b"a\nb\n"):
        Path("x.csv").write_bytes(content)
        digests.add(manifest.of_path(Path("x.csv"), "x").files[0].sha256)
    assert len(digests) == 2


def test_the_path_counts_as_written_not_where_it_lies(tower: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = manifest.of_path(tower, "mine")
    Path("elsewhere").mkdir()
    tower.rename("elsewhere/tower")
    monkeypatch.chdir("elsewhere")
    assert manifest.of_path(tower, "mine") == here


def test_linked_folders_are_followed(tower: Path) -> None:
    Path("big").mkdir()
    Path("big", "c.csv").write_bytes(b"abc")
    (tower / "big").symlink_to(Path("big").resolve())
    assert "big/c.csv" in [file.name for file in manifest.of_path(tower, "mine").files]


def test_what_is_refused(tower: Path) -> None:
    def refused(path: Path) -> str:
        with pytest.raises(DataError) as caught:
            manifest.of_path(path, "mine")
        return str(caught.value)

    assert "no such file or folder" in refused(Path("towr"))
    assert "`dvc pull`" in refused(Path("towr"))
    Path("empty").mkdir()
    Path("empty", ".hidden").write_text("")
    assert "empty: found no file" in refused(Path("empty"))
    Path("gone").symlink_to("nowhere")
    assert "gone: found a link that points nowhere" in refused(Path("gone"))
    link = tower / "c.csv"
    link.symlink_to("nowhere")
    assert "tower/c.csv: found a link that points nowhere" in refused(tower)
    link.unlink()
    link.symlink_to(".")
    assert "tower/c.csv: found a link to a folder that contains it" in refused(tower)
    link.unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(link))
        assert "tower/c.csv: found a socket, pipe or device" in refused(tower)
    link.unlink()
    os.mkfifo(link)
    assert "tower/c.csv: found a socket, pipe or device" in refused(tower)
    link.unlink()
    Path(os.fsdecode(bytes(tower) + b"/\xe9.csv")).write_text("")
    assert "found a name that is not UTF-8" in refused(tower)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file(tower: Path) -> None:
    (tower / "b.csv").chmod(0)
    with pytest.raises(DataError, match=r"cannot be read \(Permission denied\)"):
        manifest.of_path(tower, "mine")


def test_verify_names_every_fault_at_once(tower: Path) -> None:
    (tower / "manifest.json").unlink()
    with pytest.raises(DataError, match=r"found no manifest\.json"):
        manifest.verify(tower)
    manifest.write(tower, manifest.of_path(tower, "mine"))
    assert manifest.verify(tower).source == "mine"
    (tower / "b.csv").write_bytes(b"")
    (tower / "2015" / "a.csv").rename(tower / "c.csv")
    with pytest.raises(DataError) as caught:
        manifest.verify(tower)
    assert f"b.csv with sha256 {EMPTY} instead of {ABC}" in str(caught.value)
    assert "2015/a.csv missing" in str(caught.value)
    assert "c.csv not listed in the manifest" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "text that is not JSON"),
        ("[]", "the top level: found []"),
        ('{"source": "x", "kind": "hub", "origin": {}, "files": []}', "kind: found 'hub'"),
        ('{"source": "x", "kind": "path", "origin": {}, "files": [], "time": 1}', "time: found 1"),
    ],
)
def test_a_manifest_that_is_none(workspace: Path, text: str, fault: str) -> None:
    Path("manifest.json").write_text(text)
    with pytest.raises(DataError) as caught:
        manifest.read(Path())
    assert fault in str(caught.value)


def test_a_folder_without_manifest(workspace: Path) -> None:
    assert manifest.read(Path()) is None


FILES = st.builds(
    manifest.File,
    name=st.text(st.characters(codec="utf-8"), min_size=1),
    bytes=st.integers(0, 1 << 60),
    sha256=st.sampled_from([EMPTY, ABC]),
    member=st.none() | st.text(st.characters(codec="utf-8")),
)


@given(files=st.lists(FILES, max_size=4, unique_by=lambda file: file.name), order=st.randoms(use_true_random=False))
def test_a_manifest_reads_back_and_its_bytes_do_not_depend_on_the_order(
    tmp_path_factory: pytest.TempPathFactory, files: list[manifest.File], order: object
) -> None:
    folder = tmp_path_factory.mktemp("m")
    before = Path.cwd()
    os.chdir(folder)
    try:
        written = manifest.Manifest(source="s", kind="simulator", origin={"seed": 1}, files=tuple(files))
        manifest.write(Path(), written)
        first = Path("manifest.json").read_bytes()
        order.shuffle(files)  # type: ignore[attr-defined]
        manifest.write(Path(), written.model_copy(update={"files": tuple(files)}))
        assert Path("manifest.json").read_bytes() == first
        found = manifest.read(Path())
        assert found is not None
        assert set(found.files) == set(files)
    finally:
        os.chdir(before)
