"""Sequence identity beside cd-hit-est: one JSON object a line.

    python benchmarks/rna_identity.py [--molecules data/ingested/rna/rfam-seed/molecules.parquet]
    python benchmarks/rna_identity.py --quick    a smoke test of a few seconds

Without the ingested molecules, families are made up: 430 parents of Rfam's lengths with members at 5 to 50 % edits.
Seconds are CPU seconds, of one thread on both sides; compiling is left out.

rna_identity.clusters
    Single linkage at 80 % of all molecules; cd-hit-est (-c 0.8 -n 5 -g 1), where it is installed, makes greedy
    clusters, which are fewer comparisons and another answer. `together` is the share of cd-hit's members that lie in
    our cluster of their representative, `families_joined` the clusters that hold more than one family.
rna_identity.cd_hit
    Our identity beside cd-hit's own number for each member and its representative: mean difference (ours minus
    theirs), the share within .005 (its rounding and half a base) and within .02, and the share that reaches 80 % for us
    too.
rna_identity.nearest
    A fifth of the molecules against the rest, from 80 % and from 70 % on.
rna_identity.k_mers
    Share of unrelated pairs that a filter by common k-mers without false negatives refuses, at 80 %.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks.pcmci import restart_with_one_thread  # noqa: E402
from stages.rna.identity import clusters, identity, nearest  # noqa: E402

BASES = np.array(list("ACGU"))
MOLECULES = Path("data/ingested/rna/rfam-seed/molecules.parquet")


def simulated(families: int, rng: np.random.Generator) -> tuple[list[str], list[int]]:
    """Families of related molecules, and the number of each molecule's family."""
    sequences, family = [], []
    for number in range(families):
        parent = rng.choice(BASES, int(np.clip(rng.lognormal(4.4, 0.35), 23, 214)))
        for _ in range(int(np.clip(rng.lognormal(2.6, 1.1), 2, 900))):
            edits = int(rng.uniform(0.05, 0.5) * parent.size)
            bases = parent.copy()
            bases[rng.choice(parent.size, edits, replace=False)] = rng.choice(BASES, edits)
            sequences.append("".join(np.delete(bases, rng.choice(parent.size, edits // 8, replace=False))))
            family.append(number)
    return sequences, family


def ingested(path: Path) -> tuple[list[str], list[int]]:
    import polars as pl

    table = pl.read_parquet(path, columns=["sequence", "family"]).with_columns(pl.col("family").rank("dense"))
    return table["sequence"].to_list(), table["family"].fill_null(0).to_list()


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a call in this process and in those that it starts, and its answer."""

    def spent() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    begin = spent()
    answer = call()
    return spent() - begin, answer


def say(name: str, work: str, ours_s: float, **rest: Any) -> None:
    row = {"name": f"rna_identity.{name}", "work": work, "ours_s": round(ours_s, 2), "peer": None, "peer_s": None}
    print(json.dumps(row | {"ratio": None, "ours_mb": None, "peer_mb": None, "equal": None} | rest), flush=True)


def cd_hit(sequences: list[str]) -> list[tuple[int, int, float]]:
    """Members, representatives and identities by cd-hit-est; T for U, as it reads DNA."""
    with tempfile.TemporaryDirectory() as folder:
        fasta, out = Path(folder) / "molecules.fa", Path(folder) / "out"
        fasta.write_text("".join(f">{i}\n{text.replace('U', 'T')}\n" for i, text in enumerate(sequences)))
        options = ["-c", "0.8", "-n", "5", "-r", "0", "-l", "10", "-g", "1", "-d", "0", "-T", "1", "-M", "0"]
        subprocess.run(["cd-hit-est", "-i", str(fasta), "-o", str(out), *options], check=True, capture_output=True)
        found = []
        for block in out.with_suffix(".clstr").read_text().split(">Cluster")[1:]:
            rows = re.findall(r">(\d+)\.\.\. (\*|at .*?([\d.]+)%)", block)
            (representative,) = (int(number) for number, star, _ in rows if star == "*")
            found += [(int(number), representative, float(share) / 100) for number, _, share in rows if share]
    return found


def compare_clusters(sequences: list[str], family: list[int]) -> None:
    ours_s, cluster = seconds(lambda: clusters(sequences))
    work = f"{len(sequences)} molecules, median {int(np.median([len(text) for text in sequences]))} bases, 80 %"
    row: dict[str, Any] = {"clusters": int(cluster.max()) + 1, "largest": int(np.bincount(cluster).max())}
    mixed = {(c, f) for c, f in zip(cluster.tolist(), family, strict=True)}
    row["families_joined"] = sum(count > 1 for count in Counter(c for c, _ in mixed).values())
    if shutil.which("cd-hit-est") is None:
        say("clusters", work, ours_s, **row, reason="cd-hit-est (Debian: cd-hit) is not installed")
        return
    peer_s, members = seconds(lambda: cd_hit(sequences))
    row |= {"peer": "cd-hit-est", "peer_s": round(peer_s, 2), "ratio": round(peer_s / ours_s, 2)}
    row |= {"peer_clusters": len(sequences) - len(members)}
    row |= {"together": round(float(np.mean([cluster[m] == cluster[r] for m, r, _ in members])), 4)}
    say("clusters", work, ours_s, **row)
    theirs = np.array([share for _, _, share in members])
    ours_s, shares = seconds(lambda: [identity(sequences[m], sequences[r]) for m, r, _ in members])
    difference = np.array(shares) - theirs
    row = {"mean_difference": round(float(difference.mean()), 4), "least": round(float(difference.min()), 4)}
    row |= {"within_.005": round(float((np.abs(difference) <= 0.005).mean()), 4)}
    row |= {"within_.02": round(float((np.abs(difference) <= 0.02).mean()), 4)}
    row |= {"at_least_.8": round(float((np.array(shares) >= 0.8 - 1e-9).mean()), 4)}
    say("cd_hit", f"{len(members)} members beside their representatives", ours_s, peer="cd-hit-est", **row)


def compare_nearest(sequences: list[str]) -> None:
    queries, references = sequences[::5], [text for i, text in enumerate(sequences) if i % 5]
    for at_least in (0.8, 0.7):
        ours_s, found = seconds(lambda at_least=at_least: nearest(queries, references, at_least=at_least))
        work = f"{len(queries)} against {len(references)} molecules, at least {at_least}"
        say("nearest", work, ours_s, found=int((found.index_Q >= 0).sum()))


def k_mers(sequences: list[str], family: list[int], rng: np.random.Generator) -> None:
    drawn = rng.integers(0, len(sequences), (4000, 2))
    pairs = [sorted((sequences[a], sequences[b]), key=len) for a, b in drawn if family[a] != family[b]]
    refused: dict[str, float] = {}
    begin = time.process_time()
    for k in (3, 4, 5, 6):
        few = 0
        for short, long in pairs:
            words = [Counter(text[i : i + k] for i in range(len(text) - k + 1)) for text in (short, long)]
            few += (words[0] & words[1]).total() < len(short) - k + 1 - k * int(0.2 * len(short) + 1e-9)
        refused[str(k)] = round(few / len(pairs), 3)
    say("k_mers", f"{len(pairs)} pairs of two families", time.process_time() - begin, refused=refused)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Sequence identity beside its peers, one JSON object a line.")
    parser.add_argument("--molecules", type=Path, default=MOLECULES)
    parser.add_argument("--quick", action="store_true", help="a smoke test of a few seconds")
    options = parser.parse_args()
    restart_with_one_thread()
    rng = np.random.default_rng(0)
    if options.molecules.exists() and not options.quick:
        sequences, family = ingested(options.molecules)
    else:
        sequences, family = simulated(15 if options.quick else 430, rng)
    clusters(sequences[:40])
    nearest(sequences[:20], sequences[20:40])
    compare_clusters(sequences, family)
    compare_nearest(sequences)
    k_mers(sequences, family, rng)


if __name__ == "__main__":
    main()
