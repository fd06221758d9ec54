"""RNA readers beside Biopython, and the memory of ingest as a FASTA file grows.

Both sides run in one process on the same files, by turns, each several times; seconds are processor time, the least of
the runs. `equal` compares the answers, in our alphabet (upper case, U).

fasta
    Names and sequences of records of 100 bases (wrapped at 60) and of 1,500 (wrapped at 80), in our alphabet and
    checked against it, a block at a time, as `ingest` takes them. The peer is `Bio.SeqIO.parse` and the same steps
    written plainly.
fasta.objects
    A tuple for each record, beside the bare `Bio.SeqIO.parse`, which neither changes nor checks a letter.
stockholm.rows
    Names, rows and consensus of each family: what `Bio.AlignIO.parse` gives.
stockholm.molecules
    The whole way: gaps taken out, positions kept, the consensus projected on each row. The peer's rows go through the
    same steps written plainly with numpy, row by row.
memory
    Peak resident memory of `ingest` on FASTA files of 20 and 400 MB, each in a process of its own.

The families are those under --stockholm (by default data/raw/rfam-seed, else 400 made ones of Rfam's shape).

    python benchmarks/rna_readers.py [--stockholm FOLDER] [--no-memory] [--megabytes 20 400]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

RUNS = 5
MEBI = 2**20
RFAM = ROOT / "data" / "raw" / "rfam-seed"
PARAMS = """\
rna:
  sets: {lab: {path: raw, format: fasta, gate: {}}}
  labels: {mfe: null}
"""

LETTERS = set("ACGURYSWKMBDHVN")

Answer = list[tuple[Any, ...]]


def write_fasta(file: Path, records: int, length: int, width: int) -> None:
    """Random records; equal arguments give equal bytes."""
    random = np.random.default_rng(0)
    with file.open("w") as stream:
        for start in range(0, records, 10_000):
            count = min(10_000, records - start)
            letters = random.choice(np.frombuffer(b"ACGT", dtype=np.uint8), size=(count, length))
            for index, row in enumerate(letters):
                text = row.tobytes().decode()
                lines = "\n".join(text[place : place + width] for place in range(0, length, width))
                stream.write(f">molecule{start + index} of a benchmark\n{lines}\n")


def write_stockholm(file: Path, families: int) -> None:
    """Families of 26 rows and 110 columns with a hairpin, a fifth of them gaps."""
    random = np.random.default_rng(0)
    with file.open("w") as stream:
        for family in range(families):
            stream.write(f"# STOCKHOLM 1.0\n\n#=GF AC   RF{family:05d}\n#=GF ID   made{family}\n")
            stream.writelines(f"#=GF CC   comment {line}\n" for line in range(40))
            letters = random.choice(list("ACGU-"), size=(26, 110))
            stream.writelines(f"{f'AB{row:06d}.1/1-110':<30}{''.join(line)}\n" for row, line in enumerate(letters))
            stream.write(f"{'#=GC SS_cons':<30}{'<' * 40}{'_' * 30}{'>' * 40}\n//\n")


def timed(works: dict[str, Callable[[], Answer]]) -> tuple[dict[str, float], dict[str, Answer]]:
    """Least processor time of each work over several turns, and its answer."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    answers: dict[str, Answer] = {}
    for _ in range(RUNS):
        for name, work in works.items():
            begin = time.process_time()
            answers[name] = work()
            seconds[name].append(time.process_time() - begin)
    return {name: min(each) for name, each in seconds.items()}, answers


def line(name: str, work: str, seconds: dict[str, float], peer: str | None, **more: Any) -> None:
    peer_s = seconds.get(peer) if peer else None
    said: dict[str, Any] = {
        "name": f"rna_readers.{name}",
        "work": work,
        "ours_s": round(seconds["ours"], 4),
        "peer": peer,
    }
    if peer_s is not None:
        said |= {"peer_s": round(peer_s, 4), "ratio": round(peer_s / seconds["ours"], 2)}
    print(json.dumps(said | more), flush=True)


def upper(text: str) -> str:
    return text.upper().replace("T", "U")


def fasta(name: str, file: Path, work: str) -> None:
    from stages.ingest.rna.config import Fasta
    from stages.ingest.rna.fasta import records
    from stages.ingest.rna.sets import open_set

    options = Fasta(reader="fasta")

    def blocks() -> Answer:
        return [(block.names, block.sequences) for block in records(file, file.name)]

    def molecules() -> Answer:
        return list(open_set(file, options).molecules())

    try:
        from Bio import SeqIO
    except ImportError:
        for kind, mine in ((name, blocks), (f"{name}.objects", molecules)):
            line(f"fasta.{kind}", work, timed({"ours": mine})[0], None, note="biopython is not installed")
        return

    def objects() -> Answer:
        with file.open() as stream:
            return list(SeqIO.parse(stream, "fasta"))

    def checked() -> Answer:
        with file.open() as stream:
            return [(record.id, plain(str(record.seq))) for record in SeqIO.parse(stream, "fasta")]

    peer = "Bio.SeqIO, then plain code"
    seconds, answers = timed({"ours": blocks, peer: checked})
    ours = [pair for names, sequences in answers["ours"] for pair in zip(names, sequences, strict=True)]
    line(f"fasta.{name}", work, seconds, peer, equal=ours == answers[peer])
    seconds, answers = timed({"ours": molecules, "Bio.SeqIO": objects})
    same = [each.name for each in answers["ours"]] == [record.id for record in answers["Bio.SeqIO"]]
    line(f"fasta.{name}.objects", work, seconds, "Bio.SeqIO", equal=same)


def plain(text: str) -> str:
    """The letters of a row in our alphabet, without gaps; anything else is refused."""
    sequence = upper(text)
    for gap in "-.~_":
        sequence = sequence.replace(gap, "")
    if set(sequence) - LETTERS:
        raise ValueError(text)
    return sequence


def stockholm(folder: Path) -> None:
    from stages.ingest.rna.config import Stockholm
    from stages.ingest.rna.sets import open_set
    from stages.ingest.rna.stockholm import alignments

    options = Stockholm(reader="stockholm")
    files = [folder / name for name in open_set(folder, options).files]

    def rows() -> Answer:
        return [(family.rows, family.consensus) for file in files for family in alignments(file)]

    def molecules() -> Answer:
        found = open_set(folder, options).molecules()
        return [(each.name, each.sequence, each.position_map, each.pairs, each.pairs_lost) for each in found]

    try:
        from Bio import AlignIO
    except ImportError:
        for name, work in (("rows", rows), ("molecules", molecules)):
            seconds, _ = timed({"ours": work})
            line(f"stockholm.{name}", folder.name, seconds, None, note="biopython is not installed")
        return

    def families() -> Iterator[Any]:
        for file in files:
            with file.open(encoding="latin-1") as stream:
                yield from AlignIO.parse(stream, "stockholm")

    def peer_rows() -> Answer:
        return [(family, family.column_annotations) for family in families()]

    def peer_molecules() -> Answer:
        return [answer for family in families() for answer in projected(family)]

    seconds, answers = timed({"ours": rows, "Bio.AlignIO": peer_rows})
    same = all(
        [(name.decode(), b"".join(parts).decode()) for name, parts in rows_.items()]
        == [(row.id, str(row.seq)) for row in family]
        for (rows_, _), (family, _) in zip(answers["ours"], answers["Bio.AlignIO"], strict=True)
    )
    count = sum(len(rows_) for rows_, _ in answers["ours"])
    work = f"{len(answers['ours'])} families, {count} rows"
    line("stockholm.rows", work, seconds, "Bio.AlignIO", equal=same)
    peer = "Bio.AlignIO, then numpy by row"
    seconds, answers = timed({"ours": molecules, peer: peer_molecules})
    same = all(agree(one, other) for one, other in zip(answers["ours"], answers[peer], strict=True))
    line("stockholm.molecules", work, seconds, peer, equal=same)


def projected(family: Any) -> Answer:
    """The rows of a family of Biopython as plain code would bring them to our form."""
    from stages.rna.structure import parse

    pairs = parse(family.column_annotations["secondary_structure"])
    answers: Answer = []
    for row in family:
        text = upper(str(row.seq))
        is_base = np.array([letter not in "-.~_" for letter in text])
        columns = np.flatnonzero(is_base)
        position = np.cumsum(is_base) - 1
        kept = is_base[pairs[:, 0]] & is_base[pairs[:, 1]]
        answers.append((row.id, plain(text), columns, position[pairs[kept]], int(len(pairs) - kept.sum())))
    return answers


def agree(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    where = np.arange(len(one[1])) if one[2] is None else one[2]
    return bool(
        one[:2] == other[:2]
        and one[4] == other[4]
        and np.array_equal(where, other[2])
        and np.array_equal(one[3], other[3])
    )


def memory(sizes: list[int]) -> None:
    peaks: dict[int, float] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            (folder / "raw").mkdir()
            (folder / "params.yaml").write_text(PARAMS)
            write_fasta(folder / "raw" / "a.fa", size * 1_000_000 // 137, 100, 60)
            megabytes = (folder / "raw" / "a.fa").stat().st_size / 1e6
            command = [sys.executable, str(Path(__file__).resolve()), "--ingest"]
            begin = time.perf_counter()
            answer = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
            seconds = time.perf_counter() - begin
        peaks[size] = float(answer.stdout.splitlines()[-1]) / MEBI
        growth = round(peaks[size] / peaks[sizes[0]], 3)
        work = f"FASTA of {megabytes:.0f} MB, {size * 1_000_000 // 137} records"
        line("memory", work, {"ours": seconds}, None, ours_mb=round(peaks[size], 1), growth=growth)


def ingest() -> None:
    """In a process of its own: print the peak of its resident memory in bytes."""
    from stages.ingest.rna.stage import Params, run

    run(Params.read(name="rna", key="lab"), name="rna", key="lab")
    fields = dict(row.split(":", 1) for row in Path("/proc/self/status").read_text().splitlines() if ":" in row)
    print(int(fields["VmHWM"].split()[0]) * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stockholm", type=Path, default=RFAM)
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[20, 400])
    parser.add_argument("--ingest", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ingest:
        ingest()
        return
    with tempfile.TemporaryDirectory() as scratch:
        for name, records, length, width in (("short", 50_000, 100, 60), ("long", 5_000, 1500, 80)):
            file = Path(scratch) / f"{name}.fa"
            write_fasta(file, records, length, width)
            fasta(name, file, f"{records} records of {length} bases")
        if options.stockholm.is_dir():
            stockholm(options.stockholm)
        else:
            made = Path(scratch) / "made"
            made.mkdir()
            write_stockholm(made / "made.stk", 400)
            stockholm(made)
    if not options.no_memory:
        memory(options.megabytes)


if __name__ == "__main__":
    main()
