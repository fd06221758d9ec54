"""Archives as they should be, and a table of broken ones with the text each must give."""

from __future__ import annotations

import bz2
import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fake_index import sdist, wheel
from hypothesis import given
from hypothesis import strategies as st

from stages.errors import DataError
from stages.fetch.archive import Request, extract, file_names, unsafe

CONTENT = bytes(range(256)) * 400
MEMBER = "data/site.csv"


def request(archive: Path, *members: str, topped: bool = True, max_bytes: int = 1 << 30) -> Request:
    return Request(archive, members or (MEMBER,), topped=topped, max_bytes=max_bytes)


def packed(folder: Path, content: bytes) -> Path:
    archive = folder / "towers-1.2.archive"
    archive.write_bytes(content)
    return archive


def tar_of(entries: Iterable[tuple[tarfile.TarInfo, bytes]], mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:  # type: ignore[call-overload]
        for entry, content in entries:
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def entry(name: str = f"towers-1.2/{MEMBER}", size: int = 0, **fields: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size = size
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def zip_of(name: str = MEMBER, *, mode: int = 0, times: int = 1, content: bytes = CONTENT) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for _ in range(times):
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return buffer.getvalue()


def encrypted_zip() -> bytes:
    content = bytearray(zip_of())
    central = content.index(b"PK\x01\x02")
    content[6] |= 1
    content[central + 8] |= 1
    return bytes(content)


def wrong_crc_zip() -> bytes:
    content = bytearray(zip_of())
    central = content.index(b"PK\x01\x02")
    content[central + 16] ^= 0xFF
    content[14] ^= 0xFF
    return bytes(content)


def wrong_crc_gzip() -> bytes:
    content = bytearray(sdist({MEMBER: CONTENT}))
    content[-8] ^= 0xFF
    return bytes(content)


def cut_tar(at: int) -> bytes:
    return sdist({"before.csv": CONTENT, MEMBER: CONTENT}, mode="w")[:at]


GOOD: dict[str, Callable[[], bytes]] = {
    "tar.gz": lambda: sdist({"other": b"o", MEMBER: CONTENT}),
    "tar.bz2": lambda: sdist({MEMBER: CONTENT}, mode="w:bz2"),
    "tar.xz": lambda: sdist({MEMBER: CONTENT}, mode="w:xz"),
    "tar": lambda: sdist({MEMBER: CONTENT}, mode="w"),
    "tar of ./": lambda: sdist({MEMBER: CONTENT}, top="./towers-1.2"),
    "zip": lambda: wheel({f"towers-1.2/{MEMBER}": CONTENT}),
    "tar with odd modes and times": lambda: tar_of(
        [(entry(size=len(CONTENT), mode=0o4000, mtime=2**31, uid=12345), CONTENT)]
    ),
    "hostile neighbours": lambda: tar_of(
        [
            (entry("../../evil", size=1), b"e"),
            (entry("/etc/evil", type=tarfile.SYMTYPE, linkname="/etc/passwd"), b""),
            (entry(size=len(CONTENT)), CONTENT),
        ]
    ),
}


@pytest.mark.parametrize("kind", GOOD)
def test_only_the_member_asked_for_comes_out(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "out"
    written = extract(request(packed(tmp_path, GOOD[kind]())), folder)
    assert written == {MEMBER: folder / "site.csv"}
    assert list(folder.rglob("*")) == [folder / "site.csv"]
    assert (folder / "site.csv").read_bytes() == CONTENT
    assert stat.S_IMODE((folder / "site.csv").stat().st_mode) & 0o7111 == 0


LINK = {"type": tarfile.SYMTYPE, "linkname": "../../../etc/passwd"}
BROKEN: dict[str, tuple[Callable[[], bytes], str]] = {
    "not an archive": (lambda: b"<html>sign in</html>", "found a file that begins with b'<html>sign in</h'"),
    "empty file": (lambda: b"", "found a file that begins with b''"),
    "symbolic link": (lambda: tar_of([(entry(**LINK), b"")]), "found a symbolic link to '../../../etc/passwd'"),
    "hard link": (
        lambda: tar_of([(entry(type=tarfile.LNKTYPE, linkname="x"), b"")]),
        "found a hard link to 'x'; expected a regular file",
    ),
    "device": (lambda: tar_of([(entry(type=tarfile.CHRTYPE), b"")]), "found a device or pipe"),
    "pipe": (lambda: tar_of([(entry(type=tarfile.FIFOTYPE), b"")]), "found a device or pipe"),
    "folder": (lambda: tar_of([(entry(type=tarfile.DIRTYPE), b"")]), "found a folder; expected a regular file"),
    "twice in a tar": (lambda: tar_of([(entry(), b""), (entry(), b"")]), "found the member twice"),
    "other top folder too": (
        lambda: tar_of([(entry(), b""), (entry(f"other/{MEMBER}"), b"")]),
        "found the member twice",
    ),
    "truncated gzip": (lambda: sdist({MEMBER: CONTENT})[:-100], "found a truncated archive"),
    "truncated bzip2": (lambda: sdist({MEMBER: CONTENT}, mode="w:bz2")[:-10], "found a truncated archive"),
    "gzip with a wrong CRC": (wrong_crc_gzip, "found a damaged archive (CRC check failed"),
    "gzip of something else": (lambda: gzip.compress(b"no tar " * 200), "found a damaged archive"),
    "bzip2 of noise": (lambda: bz2.compress(CONTENT)[:40] + b"\xff" * 40, "found a damaged archive"),
    "tar cut in a header": (lambda: cut_tar(102_912 + 200), "found an archive without tar's end marker"),
    "tar cut between members": (lambda: cut_tar(102_912), "found an archive without tar's end marker"),
    "tar cut in the member": (
        lambda: cut_tar(102_912 + 512 + 2048),
        "found a damaged archive (unexpected end of data)",
    ),
}
BROKEN_ZIPS: dict[str, tuple[Callable[[], bytes], str]] = {
    "truncated": (lambda: zip_of()[:-30], "found a damaged archive (File is not a zip file)"),
    "wrong CRC": (wrong_crc_zip, "found a damaged archive (Bad CRC-32 for file 'data/site.csv')"),
    "encrypted": (encrypted_zip, "found an encrypted member; expected a readable one"),
    "link": (lambda: zip_of(mode=stat.S_IFLNK | 0o777), "found a symbolic link; expected a regular file"),
    "device": (lambda: zip_of(mode=stat.S_IFCHR), "found a folder, device or pipe"),
    "no member": (lambda: zip_of("data/sites.csv"), "The nearest: data/sites.csv"),
    "nothing alike": (lambda: zip_of("z"), "It holds 1 members, none alike"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_tar_is_refused(tmp_path: Path, fault: str) -> None:
    make, text = BROKEN[fault]
    with pytest.raises(DataError) as caught:
        extract(request(packed(tmp_path, make())), tmp_path / "out")
    assert str(caught.value).startswith("towers-1.2.archive")
    assert text in str(caught.value)
    assert caught.value.file == "towers-1.2.archive"


@pytest.mark.parametrize("fault", BROKEN_ZIPS)
def test_a_broken_zip_is_refused(tmp_path: Path, fault: str) -> None:
    make, text = BROKEN_ZIPS[fault]
    with pytest.raises(DataError) as caught:
        extract(request(packed(tmp_path, make()), topped=False), tmp_path / "out")
    assert text in str(caught.value)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_twice_in_a_zip(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found the member twice"):
        extract(request(packed(tmp_path, zip_of(times=2)), topped=False), tmp_path / "out")


@pytest.mark.parametrize("member", ["/etc/passwd", "../x", "a/../b", "a//b", "./a", "a\\b", "c:x", "a\x00b", ""])
def test_a_member_that_is_no_path_below_the_top_is_not_even_looked_for(tmp_path: Path, member: str) -> None:
    with pytest.raises(DataError, match="Correct `members`"):
        extract(request(packed(tmp_path, b""), member), tmp_path / "out")


def test_a_member_larger_than_allowed_by_its_own_account(tmp_path: Path) -> None:
    archive = packed(tmp_path, zip_of(content=bytes(5000)))
    with pytest.raises(DataError, match=r"found a member of 5000 bytes; expected at most 4999 bytes \(`max_bytes`\)"):
        extract(request(archive, topped=False, max_bytes=4999), tmp_path / "out")
    extract(request(archive, topped=False, max_bytes=5000), tmp_path / "out")


def test_members_together_larger_than_allowed(tmp_path: Path) -> None:
    archive = packed(tmp_path, wheel({"a": bytes(3000), "b": bytes(3000)}))
    with pytest.raises(DataError, match="member 'b': found a member of 3000 bytes"):
        extract(request(archive, "a", "b", topped=False, max_bytes=5000), tmp_path / "out")


def test_a_tar_bomb_before_the_member(tmp_path: Path) -> None:
    archive = packed(tmp_path, sdist({"bomb": bytes(5 << 20), MEMBER: CONTENT}))
    with pytest.raises(DataError, match="found more than 3000000 bytes when decompressed"):
        extract(request(archive, max_bytes=3_000_000), tmp_path / "out")


def test_a_zip_that_holds_more_than_it_declares(tmp_path: Path) -> None:
    content = bytearray(zip_of(content=bytes(5000)))
    central = content.index(b"PK\x01\x02")
    for at in (22, central + 24):
        content[at : at + 4] = (10).to_bytes(4, "little")
    with pytest.raises(DataError, match="damaged archive"):
        extract(request(packed(tmp_path, bytes(content)), topped=False), tmp_path / "out")


def test_a_sparse_member_is_written_in_full(tmp_path: Path) -> None:
    # GNU tar's old sparse format: 1000 bytes of which the last 4 are stored.
    made = tarfile.TarInfo(f"towers-1.2/{MEMBER}")
    made.size = 4
    made.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(made.tobuf(tarfile.GNU_FORMAT))
    header[386:398] = b"%011o\0" % 996
    header[398:410] = b"%011o\0" % 4
    header[483:495] = b"%011o\0" % 1000
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    archive = packed(tmp_path, bytes(header) + b"tail".ljust(512, b"\0") + bytes(1024))
    written = extract(request(archive), tmp_path / "out")
    assert written[MEMBER].read_bytes() == bytes(996) + b"tail"


@given(st.lists(st.sampled_from(["a", "..", ".", "", "/", "é", "b.csv", "\\", "c:", "\n"]), min_size=1).map("/".join))
def test_a_name_that_passes_stays_below_the_folder(name: str) -> None:
    with TemporaryDirectory() as place:
        folder = Path(place, "out").resolve()
        content = tar_of([(entry(name, size=1), b"x")])
        try:
            written = extract(request(packed(Path(place), content), name, topped=False), folder)
        except DataError:
            assert not folder.exists()
        else:
            assert unsafe(name) is None
            assert written[name].resolve().is_relative_to(folder)
            assert sorted(path.name for path in Path(place).iterdir()) == ["out", "towers-1.2.archive"]


@given(st.text(min_size=1))
def test_any_text_that_is_safe_is_a_path_below_a_folder(name: str) -> None:
    if unsafe(name) is None:
        target = Path("/folder") / name
        assert target.parts[:2] == ("/", "folder")
        assert "/".join(target.parts[2:]) == name


@given(st.lists(st.text("aAb/", min_size=1).filter(lambda name: unsafe(name) is None), min_size=1, unique=True))
def test_every_member_has_a_file_name_of_its_own(members: list[str]) -> None:
    names = file_names(members)
    assert list(names) == members
    assert len(set(names.values())) == len(members)
