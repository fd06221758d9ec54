"""The cache of downloaded archives, shared by all sources, checkouts and processes of a user.

``ROOT/archives/SHA256/`` holds the archive under its own name, ``partial`` while it is downloaded, and ``lock``, which
one process at a time holds (the kernel frees it when the process dies). ROOT is ``BRAID_CACHE``, else
``XDG_CACHE_HOME/braid``, else ``~/.cache/braid`` (macOS: ``~/Library/Caches/braid``).
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from stages.artifacts import sha256_file
from stages.errors import StageError

SILENCE_S = 10.0
LOCK_POLL_S = 0.2
FULL = (errno.ENOSPC, errno.EDQUOT)
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


def root() -> Path:
    """Folder of the cache.

    Raises
    ------
    StageError
        The user has no home folder and names no other place.
    """
    if chosen := os.environ.get("BRAID_CACHE"):
        return Path(chosen).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    if Path(shared).is_absolute():
        return Path(shared) / "braid"
    try:
        home = Path.home()
    except RuntimeError:
        raise StageError("No home folder to keep downloads in. Set BRAID_CACHE to a folder.") from None
    return home / ("Library/Caches/braid" if sys.platform == "darwin" else ".cache/braid")


@dataclass(frozen=True)
class Entry:
    """The place of one archive in the cache."""

    sha256: str

    @property
    def folder(self) -> Path:
        """Folder of this archive."""
        return root() / "archives" / self.sha256

    @property
    def partial(self) -> Path:
        """What has arrived of the archive so far."""
        return self.folder / "partial"

    def intact(self, *, repair: bool = False) -> Path | None:
        """The cached archive if its digest is right; with ``repair``, one whose digest is wrong is deleted."""
        # Without repair this is only a short cut: what goes wrong shows again, and is told, under the lock.
        with suppress(FileNotFoundError if repair else OSError):
            for path in sorted(self.folder.iterdir()):
                if path.name in ("partial", "lock"):
                    continue
                if sha256_file(path) == self.sha256:
                    return path
                if repair:
                    path.unlink()
        return None

    def keep(self, filename: str) -> Path:
        """Give the finished ``partial`` the archive's own name."""
        return self.partial.replace(self.folder / filename)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the archive for this process; errors of the disk become one paragraph.

        Raises
        ------
        StageError
            The disk is full, or the cache cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / "lock").open("ab") as lock:
                self._acquire(lock.fileno())
                yield
        except OSError as error:
            if error.errno in FULL:
                free = shutil.disk_usage(root()).free
                with suppress(OSError):
                    self.partial.unlink()
                raise StageError(
                    f"{self.folder}: the disk is full ({free / 2**20:.0f} MiB free). The partial download was deleted; "
                    "make room, or set BRAID_CACHE to a folder on another disk, and run the stage again."
                ) from error
            if error.errno in (*FORBIDDEN, errno.ENOTDIR, errno.EEXIST, errno.ENOLCK):
                raise StageError(
                    f"{error.filename or self.folder}: {error.strerror}. Downloads are kept there; set BRAID_CACHE to "
                    "a folder you can write to and run the stage again."
                ) from error
            raise

    def _acquire(self, lock: int) -> None:
        with heartbeat(lambda: f"waiting for another process that downloads the same archive ({self._arrived()})"):
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(LOCK_POLL_S)
                else:
                    return

    def _arrived(self) -> str:
        return f"{size(self.partial) / 1e6:.1f} MB so far"


def size(path: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@contextmanager
def heartbeat(text: Callable[[], str]) -> Iterator[None]:
    """Say on stderr, every ten seconds, what a block that may be silent waits for."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(SILENCE_S):
            if line := text():
                print(line, file=sys.stderr, flush=True)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
