"""Devices leased by id: a lease is a set of kernel file locks, so it ends with the processes that hold it.

A device has ``SLOTS`` lock files in a folder of the machine (not of the workspace: two clones share one GPU). A lease
on a share of a device holds as many of them as the share needs. The locks are inherited by the stage's process, so a
coordinator that is killed gives nothing back while its stage still computes, and a pid that is used again means
nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from flows.errors import FlowError

#: Parts a device can be shared in: halves, thirds, quarters and sixths come out even.
SLOTS = 12
POLL_SECONDS = 0.2
MASK = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
#: Hides all GPUs from a process that was given none.
HIDDEN = {MASK: ""}


class DeviceError(FlowError):
    """The devices asked for are not there, or are written wrongly."""

    exit_code = 2


@dataclass(frozen=True)
class Device:
    """One device: ``cuda`` with its index among the visible ones and the id it is known by, or a ``cpu`` slot.

    ``key`` is its id on this machine, where that differs from the one it is known by.
    """

    kind: str
    index: int
    identity: str
    key: str = ""

    @property
    def lock_name(self) -> str:
        """What its lock files are called: a GPU has one name here, whether a mask gives its index or its UUID."""
        return re.sub(r"\W", "_", f"{self.kind}-{self.key or self.identity}")

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"


@dataclass(frozen=True)
class Lease:
    """A share of a device, held until the context that gave it ends."""

    device: Device
    share: float
    files: tuple[int, ...]
    streams: tuple[IO[str], ...] = field(default=(), repr=False, compare=False)

    def close(self) -> None:
        """Let go; a process that inherited the locks still holds them until it ends."""
        for stream in self.streams:
            stream.close()

    @property
    def environment(self) -> dict[str, str]:
        """What the stage's process is told: its device, and no other, is visible."""
        told = {"BRAID_DEVICE": self.device.kind}
        if self.device.kind != "cuda":
            return told | HIDDEN
        if self.device.identity.isdigit() and MASK not in os.environ:
            # nvidia-smi counts by bus, CUDA by speed: the index must mean the device that was leased.
            told[ORDER] = os.environ.get(ORDER, "PCI_BUS_ID")
        return told | {MASK: self.device.identity}


def parse_devices(text: str, jobs: int, environment: Mapping[str, str] = os.environ) -> tuple[Device, ...]:
    """Devices that stages marked ``gpu`` may take.

    Parameters
    ----------
    text
        ``auto``: the visible GPUs, or where there is none one CPU slot for each job; ``cpu:2``: two CPU slots;
        ``cuda:0,1``: GPUs by their index among the visible ones.
    jobs
        Stages at a time.
    environment
        Where an outer CUDA_VISIBLE_DEVICES is read from: index 0 then means its first entry.

    Raises
    ------
    DeviceError
        The text is not understood, or a GPU is not there.
    """
    if text == "auto":
        return _visible_devices(environment) or parse_devices(f"cpu:{jobs}", jobs)
    if match := re.fullmatch(r"cpu:([1-9]\d*)", text):
        return tuple(Device("cpu", index, str(index)) for index in range(int(match[1])))
    if re.fullmatch(r"cuda:\d+(,\d+)*", text):
        visible = _visible_devices(environment)
        wanted = [int(part) for part in text.removeprefix("cuda:").split(",")]
        for index in wanted:
            if index >= len(visible):
                raise DeviceError(
                    f"--devices {text}: no GPU {index}; {len(visible)} visible here"
                    f"{f' ({MASK}={environment[MASK]})' if MASK in environment else ''}."
                )
        return tuple(visible[index] for index in dict.fromkeys(wanted))
    raise DeviceError(f"--devices {text}: expected auto, cpu:N or cuda:I,J, such as cpu:2 or cuda:0,1.")


def visible_gpus(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Ids of the GPUs a process here would see: those of an outer mask, else all that the driver lists."""
    if MASK in environment:
        entries = [entry.strip() for entry in environment[MASK].split(",")]
        # As the driver reads it: the first entry that is empty or negative ends the list.
        valid = []
        for entry in entries:
            if not entry or entry.startswith("-"):
                break
            valid.append(entry)
        return valid
    return list(_listed_gpus().values())


def _visible_devices(environment: Mapping[str, str]) -> tuple[Device, ...]:
    visible = visible_gpus(environment)
    listed = {} if all(identity.isdigit() for identity in visible) else _listed_gpus()
    found = []
    for index, identity in enumerate(visible):
        # A mask may shorten a UUID as long as it stays unique.
        keys = [listed[uuid] for uuid in listed if uuid.startswith(identity)]
        found.append(Device("cuda", index, identity, keys[0] if len(keys) == 1 else ""))
    return tuple(found)


def _listed_gpus() -> dict[str, str]:
    """UUID -> index of each GPU that the driver lists."""
    if not shutil.which("nvidia-smi"):
        return {}
    query = ["nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"]
    run = subprocess.run(query, capture_output=True, text=True, check=False)
    rows = [[cell.strip() for cell in line.split(",")] for line in run.stdout.splitlines()]
    return {row[1]: row[0] for row in rows if len(row) == 2 and row[0].isdigit()}


def lease_folder() -> Path:
    """Where the lock files of this machine's devices lie; ``BRAID_LEASES`` names another place."""
    default = Path(tempfile.gettempdir()) / f"braid-leases-{os.getuid()}"
    return Path(os.environ.get("BRAID_LEASES", default))


@contextlib.contextmanager
def leased(devices: Sequence[Device], share: float = 1.0, folder: Path | None = None) -> Iterator[Lease]:
    """Hold a share of one of some devices; wait until one has it free.

    Parameters
    ----------
    devices
        Any of these will do; the first with enough left is taken.
    share
        Part of the device, more than 0 and at most 1.

    Raises
    ------
    DeviceError
        No device, or a share outside its range.
    """
    while True:
        lease = try_lease(devices, share, folder)
        if lease:
            try:
                yield lease
            finally:
                lease.close()
            return
        time.sleep(POLL_SECONDS)


def try_lease(devices: Sequence[Device], share: float = 1.0, folder: Path | None = None) -> Lease | None:
    """A share of one of some devices, or None where none has it free; as :func:`leased`, without waiting."""
    if not devices or not 0 < share <= 1:
        raise DeviceError(f"a share of {share:g} of one of {len(devices)} devices cannot be leased")
    folder = folder or lease_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    needed = max(1, round(share * SLOTS))
    for device in devices:
        held = _take(folder, device, needed)
        if held:
            return Lease(device, share, tuple(stream.fileno() for stream in held), tuple(held))
    return None


def _take(folder: Path, device: Device, needed: int) -> list[IO[str]]:
    """Lock that many slots of a device, or none."""
    name = device.lock_name
    with (folder / f"{name}.guard").open("a") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        held: list[IO[str]] = []
        for slot in range(SLOTS):
            stream: IO[str] = (folder / f"{name}.{slot}").open("a+")
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                stream.close()
                continue
            held.append(stream)
            if len(held) == needed:
                _sign(held[0])
                return held
        for stream in held:
            stream.close()
    return []


def _sign(stream: IO[str]) -> None:
    """Write for a person who looks who holds the lease; nobody's code reads it."""
    stream.truncate(0)
    stream.write(f"pid {os.getpid()} on {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
    stream.flush()
