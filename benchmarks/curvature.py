"""Curvature beside curvlinops and PyHessian: one JSON object a line.

    python benchmarks/curvature.py            the whole table, about two minutes on one core
    python benchmarks/curvature.py --quick    a smoke test of a few seconds

A tanh net with two hidden layers, cross-entropy, single precision; the samples in one batch and in eight. Seconds are
CPU seconds of this process with one thread for all sides, the median of three runs. `value` and `peer_value` stand
beside each other; `equal` means within a thousandth for eigenvalues and within four standard errors of the difference
for traces (each side draws its own signs).

curvature.eigenvalue
    The largest eigenvalue: our Lanczos, residual at most 1e-3; scipy's eigsh (which=LA) on the operator of curvlinops,
    the same; PyHessian's power iteration, which finds the one of largest magnitude. It ends when its value changes by
    less than a share, and with its default, 1e-3, it ends about 0.6 % too low: it runs with 1e-6 here.
curvature.eigenvalues
    The five largest.
curvature.trace
    Hutchinson with 100 probes of random signs on each side.
curvature.memory
    Peak resident memory of the trace and the eigenvalue, each size in a process of its own, as batches are added.

curvlinops-for-pytorch 3.0.1 and PyHessian 0.1 are installed into an environment that sees the project's packages with
`pip install --no-deps curvlinops-for-pytorch pyhessian backpack-for-pytorch einops einconv linear_operator opt-einsum
jaxtyping wadler-lindig`. A peer that is not installed is skipped with a line that says so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks.pcmci import cpu_seconds, restart_with_one_thread  # noqa: E402
from stages.metrics.curvature import hutchinson_trace, leading_eigenvalues  # noqa: E402
from stages.metrics.objectives import Objective, Weights  # noqa: E402

INPUTS, CLASSES, PROBES, TOLERANCE = 64, 10, 100, 1e-3
MEBI = 2**20
Batches = list[tuple[torch.Tensor, torch.Tensor]]


def fitted_net(samples: int, units: int) -> tuple[nn.Sequential, Batches]:
    """Train a net for some steps on labels that a random map gives; it and the samples as one batch."""
    torch.manual_seed(0)
    x_NI = torch.randn(samples, INPUTS)
    label_N = (x_NI @ torch.randn(INPUTS, CLASSES)).argmax(dim=1)
    layers = [nn.Linear(INPUTS, units), nn.Tanh(), nn.Linear(units, units), nn.Tanh(), nn.Linear(units, CLASSES)]
    net = nn.Sequential(*layers)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(50):
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(x_NI), label_N).backward()
        optimiser.step()
    return net, [(x_NI, label_N)]


def loss(at: Weights, net: nn.Module, x_NI: torch.Tensor, label_N: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(torch.func.functional_call(net, dict(at), (x_NI,)), label_N)


def our_objective(net: nn.Module, batches: Batches) -> tuple[Objective, dict[str, torch.Tensor]]:
    losses = [partial(loss, net=net, x_NI=x, label_N=label) for x, label in batches]
    return Objective(losses, weights=[len(x) for x, _ in batches]), dict(net.named_parameters())


Answer = tuple[list[float], float | None]


def ours(net: nn.Module, batches: Batches, count: int) -> Answer:
    """Leading eigenvalues, or for `count` 0 the trace with its standard error."""
    objective, at = our_objective(net, batches)
    if count:
        found = leading_eigenvalues(objective.hessian(at), count, seed=0, tolerance=TOLERANCE)
        assert found.converged
        return found.values, None
    trace = hutchinson_trace(objective.hessian(at), seed=0, probes=PROBES)
    return [trace.value], trace.standard_error


def curvlinops(net: nn.Module, batches: Batches, count: int) -> Answer:
    from curvlinops import HessianLinearOperator
    from curvlinops import hutchinson_trace as their_trace
    from scipy.sparse.linalg import eigsh

    torch.manual_seed(0)
    operator = HessianLinearOperator(
        net, nn.CrossEntropyLoss(), list(net.parameters()), batches, check_deterministic=False
    )
    if not count:
        return [float(their_trace(operator, PROBES))], None
    start = np.random.default_rng(0).normal(size=operator.shape[0]).astype(np.float32)
    values = eigsh(operator.to_scipy(), k=count, which="LA", tol=TOLERANCE, v0=start, return_eigenvectors=False)
    return sorted(map(float, values), reverse=True), None


def pyhessian(net: nn.Module, batches: Batches, count: int) -> Answer:
    from pyhessian import hessian

    torch.manual_seed(0)
    net.zero_grad()
    data = {"data": batches[0]} if len(batches) == 1 else {"dataloader": batches}
    with warnings.catch_warnings():
        # torch warns of backward(create_graph=True), which the peer calls.
        warnings.simplefilter("ignore")
        peer = hessian(net, nn.CrossEntropyLoss(), cuda=False, **data)
        if not count:
            return [float(np.mean(peer.trace(maxIter=PROBES, tol=0)))], None
        values = peer.eigenvalues(maxIter=2000, tol=1e-6, top_n=count)[0]
    return [float(value) for value in values], None


PEERS: dict[str, tuple[str, Callable[[nn.Module, Batches, int], Answer]]] = {
    "curvlinops": ("curvlinops-for-pytorch 3.0.1", curvlinops),
    "pyhessian": ("PyHessian 0.1", pyhessian),
}


def measure(name: str, count: int, net: nn.Module, batches: Batches, repeats: int) -> None:
    """Print a line for each peer."""
    ours_s, (values, error) = cpu_seconds(lambda: ours(net, batches, count), repeats)
    size = sum(w.numel() for w in net.parameters())
    samples = sum(len(x) for x, _ in batches)
    what = f"{count} of the eigenvalues" if count else f"{PROBES} probes"
    work = f"{what}, {size} weights, {samples} samples in {len(batches)} batch{'es' if len(batches) > 1 else ''}"
    for module, (peer, answer) in PEERS.items():
        row: dict[str, Any] = {"name": name, "work": work, "ours_s": round(ours_s, 3), "peer": peer}
        row |= {"peer_s": None, "ratio": None, "ours_mb": None, "peer_mb": None, "equal": None}
        row["value"] = [round(value, 5) for value in values]
        try:
            __import__(module)
        except ImportError as missing:
            print(json.dumps(row | {"reason": f"not installed: {missing}"}), flush=True)
            continue
        peer_s, (theirs, _) = cpu_seconds(lambda answer=answer: answer(net, batches, count), repeats)
        bound = 4 * 2**0.5 * error if error is not None else TOLERANCE * abs(values[0])
        row |= {"peer_s": round(peer_s, 3), "ratio": round(peer_s / ours_s, 2)}
        row["equal"] = max(abs(a - b) for a, b in zip(values, theirs, strict=True)) <= bound
        row["peer_value"] = [round(value, 5) for value in theirs]
        if error is not None:
            row["standard_error"] = round(error, 5)
        print(json.dumps(row), flush=True)


def peak(batches: int) -> None:
    """In a process of its own: print the peak of its resident memory in bytes."""
    net, _ = fitted_net(512, 128)

    def batch(at: Weights, number: int) -> torch.Tensor:
        draw = torch.Generator().manual_seed(number)
        x_NI, label_N = torch.randn(512, INPUTS, generator=draw), torch.randint(0, CLASSES, (512,), generator=draw)
        return loss(at, net, x_NI, label_N)

    objective = Objective([partial(batch, number=number) for number in range(batches)])
    hessian = objective.hessian(dict(net.named_parameters()))
    leading_eigenvalues(hessian, seed=0, max_products=5)
    hutchinson_trace(hessian, seed=0, probes=5)
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    print(int(fields["VmHWM"].split()[0]) * 1024)


def memory(sizes: tuple[int, ...]) -> None:
    peaks: list[float] = []
    for batches in sizes:
        command = [sys.executable, str(Path(__file__).resolve()), "--peak", str(batches)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
        peaks.append(int(answer.stdout.splitlines()[-1]) / MEBI)
        row = {"name": "curvature.memory", "work": f"{batches} batches of 512 samples", "ours_mb": round(peaks[-1], 1)}
        print(json.dumps(row | {"growth": round(peaks[-1] / peaks[0], 3)}), flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Curvature beside its peers, one JSON object a line.")
    parser.add_argument("--quick", action="store_true", help="a smoke test of a few seconds")
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    restart_with_one_thread()
    torch.set_num_threads(1)
    if options.peak:
        peak(options.peak)
        return
    net, whole = fitted_net(512 if options.quick else 2048, 16 if options.quick else 128)
    (x_NI, label_N) = whole[0]
    parts = list(zip(x_NI.chunk(8), label_N.chunk(8), strict=True))
    repeats = 1 if options.quick else 3
    for batches in (whole, parts):
        measure("curvature.eigenvalue", 1, net, batches, repeats)
        measure("curvature.eigenvalues", 5, net, batches, repeats)
        measure("curvature.trace", 0, net, batches, repeats)
    memory((1, 4) if options.quick else (1, 8, 64))


if __name__ == "__main__":
    main()
