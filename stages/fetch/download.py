"""Downloading one file, resumed where the server can, into a place where a killed process leaves what had arrived."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import httpx2
from tqdm import tqdm
from unearth.fetchers.sync import PyPIClient

from stages.artifacts import sha256_file
from stages.errors import DataError, StageError
from stages.fetch.cache import SILENCE_S, heartbeat, size
from stages.fetch.index import Offer, describe, pause, redact, transient

BUSY = {408, 425, 429, 500, 502, 503, 504, 520, 527}
REPLACED = (
    "Nothing was extracted. If the file was meant to change, pin its new digest; if not, do not trust this index."
)


class Refused(StageError):
    """The server does not give the file; another place may."""


class _Busy(httpx2.TransportError):
    """The server asks to come again."""


def download(opened: PyPIClient, offer: Offer, partial: Path, sha256: str, *, retries: int, max_bytes: int) -> None:
    """Bring ``partial`` to hold the file with this digest.

    What ``partial`` holds is kept and continued with an HTTP Range request; a server without ranges sends it all.

    Raises
    ------
    Refused
        No answer after all attempts, or a refusal.
    DataError
        The file has another digest, or is larger than allowed.
    """
    if size(partial) and sha256_file(partial) == sha256:
        return
    failures = 0
    most = size(partial)
    while True:
        resumed = size(partial)
        try:
            _transfer(opened, offer, partial, resumed, max_bytes)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # An attempt that brought more than any before it does not count as a failure.
            failures = 0 if size(partial) > most else failures + 1
            most = max(most, size(partial))
            if not transient(error) or failures > retries:
                raise Refused(f"{offer.filename} from {redact(offer.url)}: {redact(describe(error))}") from error
            pause(max(failures, 1), f"{offer.filename}: {redact(describe(error))}")
            continue
        except PermissionError as error:
            if error.filename is None or Path(error.filename) == partial:
                raise
            raise Refused(f"{offer.filename}: {error.filename} cannot be read ({error.strerror})") from error
        except DataError:
            partial.unlink(missing_ok=True)
            raise
        digest = sha256_file(partial)
        if digest == sha256:
            return
        with partial.open("rb") as stream:
            looks = _looks_like(stream.read(256))
        length = size(partial)
        partial.unlink()
        if resumed:
            continue  # the part of an earlier run may be at fault: once more, from the first byte
        raise DataError(
            offer.filename,
            found=f"sha256 {digest} in {length} bytes from {redact(offer.url)}{looks}",
            expected=f"sha256 {sha256}, as pinned in params.yaml",
            remedy=REPLACED,
        )


def _transfer(opened: PyPIClient, offer: Offer, partial: Path, resumed: int, max_bytes: int) -> None:
    # No compression on the way: the digest is that of the bytes as they lie on the server.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={resumed}-"} if resumed else {})
    with heartbeat(_Stall(offer.filename, partial)), opened.stream("GET", offer.url, headers=headers) as response:
        _check_answer(response, offer, partial)
        continued = response.status_code == 206
        if continued and not response.headers.get("Content-Range", "").startswith(f"bytes {resumed}-"):
            partial.unlink(missing_ok=True)
            raise _Busy("the server sent another range than it was asked for")
        start = resumed if continued else 0
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdigit() else None
        if total is not None and total > max_bytes:
            raise _too_large(offer, f"{total} bytes", max_bytes)
        with partial.open("ab" if continued else "wb") as output, _bar(offer, start, total) as bar:
            for block in response.iter_raw():
                start += len(block)
                if start > max_bytes:
                    raise _too_large(offer, f"more than {max_bytes} bytes", max_bytes)
                output.write(block)
                bar.update(len(block))


def _bar(offer: Offer, start: int, total: int | None) -> tqdm[NoReturn]:
    interval = 0.1 if sys.stderr.isatty() else SILENCE_S
    return tqdm(desc=offer.filename, total=total, initial=start, unit="B", unit_scale=True, mininterval=interval)


class _Stall:
    """The line to show when nothing has arrived since it was last asked; empty while bytes come in."""

    def __init__(self, filename: str, partial: Path) -> None:
        self.filename = filename
        self.partial = partial
        self.seen = size(partial)

    def __call__(self) -> str:
        arrived = size(self.partial)
        moved, self.seen = arrived != self.seen, arrived
        return "" if moved else f"{self.filename}: no bytes for {SILENCE_S:.0f} s, {arrived / 1e6:.1f} MB so far"


def _check_answer(response: httpx2.Response, offer: Offer, partial: Path) -> None:
    status = response.status_code
    if status == 416:
        partial.unlink(missing_ok=True)
        raise _Busy("the server cannot continue the file; from the first byte")
    if status in BUSY:
        raise _Busy(f"the server answered {status} {response.reason_phrase}")
    where = f"{offer.filename} from {redact(offer.url)}"
    if status not in (200, 206):
        raise Refused(f"{where}: the server answered {status} {response.reason_phrase}".rstrip())
    kind = response.headers.get("Content-Type", "")
    if kind.startswith("text/html") and urlsplit(offer.url).scheme != "file":
        raise Refused(f"{where}: the server answered with an HTML page, such as a login or error page of a proxy")


def _too_large(offer: Offer, found: str, max_bytes: int) -> DataError:
    return DataError(
        offer.filename,
        found=found,
        expected=f"at most {max_bytes} bytes (`max_bytes`)",
        remedy="If the archive really is that large, raise `max_bytes` of the source in params.yaml.",
    )


def _looks_like(start: bytes) -> str:
    text = start.lstrip().lower()
    return " (an HTML page)" if text.startswith((b"<!doctype html", b"<html")) else ""
