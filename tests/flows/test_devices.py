"""Devices leased by id: exclusive between processes, shared in fractions, and freed by the death of who holds them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flows.devices import Device, DeviceError, Lease, leased, parse_devices, try_lease
from tests.flows.conftest import ROOT, Project

GPU = Device("cuda", 0, "0")
HOLDER = """
import subprocess, sys
from pathlib import Path
from flows.devices import Device, try_lease
lease = try_lease([Device("cuda", 0, "0")], float(sys.argv[2]), Path(sys.argv[1]))
child = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL, pass_fds=lease.files if lease else ())
print(child.pid if lease else "none", flush=True)
sys.stdin.read()
child.kill()
child.wait()
"""


class Holder:
    """Another process that holds a share, and whose child has inherited the locks."""

    def __init__(self, folder: Path, share: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(folder), str(share)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.child = self.process.stdout.readline().strip()

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "leases"


def test_held_by_another_process_until_the_last_that_inherited_it_dies(folder: Path) -> None:
    holder = Holder(folder, 1.0)
    child = os.pidfd_open(int(holder.child))
    holder.process.kill()
    holder.process.communicate()
    # The coordinator is gone, the stage still computes: the device is not free.
    assert try_lease([GPU], 1.0, folder) is None
    assert try_lease([GPU], 0.1, folder) is None
    signal.pidfd_send_signal(child, signal.SIGKILL)
    select.select([child], [], [], 60)
    os.close(child)
    with leased([GPU], 1.0, folder) as lease:
        assert lease.device == GPU
    assert len(list(folder.iterdir())) == 13  # the same files, whoever held them


def test_two_halves_fit_and_a_third_waits(folder: Path) -> None:
    with leased([GPU], 0.5, folder):
        other = Holder(folder, 0.5)
        assert other.child != "none"
        assert try_lease([GPU], 0.5, folder) is None
        with leased([GPU, Device("cuda", 1, "1")], 0.5, folder) as lease:
            assert lease.device.index == 1
        other.close()
    assert _free(folder)


def test_thirds_and_quarters_come_out_even(folder: Path) -> None:
    for parts in (2, 3, 4, 6):
        held = [try_lease([GPU], 1 / parts, folder) for _ in range(parts)]
        assert all(held)
        assert try_lease([GPU], 1 / parts, folder) is None
        for lease in held:
            assert lease is not None
            lease.close()


def _free(folder: Path) -> bool:
    lease = try_lease([GPU], 1.0, folder)
    if lease:
        lease.close()
    return lease is not None


def test_a_file_with_the_pid_of_a_living_process_holds_nothing(folder: Path) -> None:
    """After a reboot or a crash the pid in the file may be anybody's."""
    with leased([GPU], 1.0, folder):
        pass
    (folder / "cuda_0.0").write_text(f"pid {os.getpid()} on here since 1970-01-01 00:00:00\n")
    assert _free(folder)


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver that lists three GPUs."""
    command = tmp_path / "bin" / "nvidia-smi"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\nprintf '0, GPU-aaaa-1\\n1, GPU-bbbb-2\\n2, GPU-bbcc-3\\n'\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return command


def told(device: Device) -> str:
    return Lease(device, 1.0, ()).environment["CUDA_VISIBLE_DEVICES"]


def test_devices_without_a_mask(nvidia_smi: Path) -> None:
    found = parse_devices("auto", 2, {})
    assert [told(device) for device in found] == ["0", "1", "2"]
    assert Lease(found[1], 1.0, ()).environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert [str(device) for device in parse_devices("cuda:2,0", 2, {})] == ["cuda:2", "cuda:0"]


@pytest.mark.parametrize(
    ("mask", "identities"),
    [("2,0", ["2", "0"]), ("", []), ("-1", []), ("1,-1,2", ["1"]), ("GPU-bbcc", ["GPU-bbcc"]), (" 1 , 2", ["1", "2"])],
)
def test_an_outer_mask_is_composed(nvidia_smi: Path, mask: str, identities: list[str]) -> None:
    """Index 0 of ``--devices`` is the first that the outer mask shows, and the stage gets the id that mask gave."""
    environment = {"CUDA_VISIBLE_DEVICES": mask}
    found = parse_devices("auto", 2, environment)
    if identities:
        assert [told(device) for device in found] == identities
        assert told(parse_devices("cuda:0", 2, environment)[0]) == identities[0]
    else:
        assert [str(device) for device in found] == ["cpu:0", "cpu:1"]
        assert [told(device) for device in found] == ["", ""]
    with pytest.raises(DeviceError, match=rf"no GPU 7; {len(identities)} visible here \(CUDA_VISIBLE_DEVICES="):
        parse_devices("cuda:7", 2, environment)


def test_one_gpu_under_two_names_is_leased_once(nvidia_smi: Path, folder: Path) -> None:
    by_index = parse_devices("cuda:2", 1, {})
    by_uuid = parse_devices("auto", 1, {"CUDA_VISIBLE_DEVICES": "GPU-bbcc"})
    shortened = parse_devices("auto", 1, {"CUDA_VISIBLE_DEVICES": "GPU-aa"})
    with leased(by_index, 1.0, folder), leased(shortened, 1.0, folder):
        assert try_lease(by_uuid, 1.0, folder) is None


@pytest.mark.parametrize("text", ["", "gpu", "cuda:", "cuda:a", "cpu:0", "cpu", "cuda:0,", "0"])
def test_devices_not_understood(text: str) -> None:
    with pytest.raises(DeviceError, match=r"expected auto, cpu:N or cuda:I,J"):
        parse_devices(text, 2, {})


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5])
def test_shares_outside_their_range(share: float, folder: Path) -> None:
    with pytest.raises(DeviceError, match="cannot be leased"):
        try_lease([GPU], share, folder)


def test_stages_of_a_run_share_the_devices(project: Project, nvidia_smi: Path) -> None:
    """Two halves meet on GPU 1 (they wait for each other there), a whole one runs after them, a cpu stage sees none."""
    mask = "echo $CUDA_VISIBLE_DEVICES"
    gpu = {"device": "gpu", "share": 0.5}
    project.graph(
        a={"cmd": f"echo >ab; read w <ba; {mask} > a", "deps": ["x"], "outs": ["a"], "meta": gpu},
        b={"cmd": f"read w <ab; echo >ba; {mask} > b", "deps": ["x"], "outs": ["b"], "meta": gpu},
        c={"cmd": f"test -e a -a -e b && {mask} > c", "deps": ["x"], "outs": ["c"], "meta": {"device": "gpu"}},
        d={"cmd": f"{mask} > d", "deps": ["x"], "outs": ["d"], "meta": {"device": "cpu"}},
        e={"cmd": f"{mask} > e", "deps": ["x"], "outs": ["e"]},
    )
    project.file("x", "1")
    project.fifo("ab")
    project.fifo("ba")
    run = project.repro(
        "--jobs", "5", "--devices", "cuda:1", PATH=os.environ["PATH"], CUDA_VISIBLE_DEVICES="2,GPU-bbbb-2,0"
    )
    assert run.code == 0, run.err
    assert [project.read(name).strip() for name in "abcde"] == ["GPU-bbbb-2"] * 3 + ["", ""]
    devices = {name: stage["device"] for name, stage in run.stages.items()}
    assert devices == {"a": "cuda:1", "b": "cuda:1", "c": "cuda:1", "d": None, "e": None}
