"""Small towers in the layouts of real ones, with a plausible climate: what the real graph runs on in the tests."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import polars as pl


def half_hours(years: range, seed: int) -> pl.DataFrame:
    """A half-hourly tower with FLUXNET names and units: VPD hPa, SWC percent, fluxes W m-2, P mm."""
    rng = np.random.default_rng(seed)
    start = np.datetime64(f"{years.start}-01-01T00:00")
    stop = np.datetime64(f"{years.stop}-01-01T00:00")
    time = np.arange(start, stop, np.timedelta64(30, "m"))
    day = (time - start) // np.timedelta64(1, "D")
    days = int(day[-1]) + 1
    hour = (time - time.astype("datetime64[D]")) / np.timedelta64(1, "h") + 0.25
    season = -np.cos(2 * np.pi * (np.arange(days) - 15) / 365.25)
    cloud, wet = np.clip(rng.beta(4, 2, days), 0.15, 1), rng.random(days) < 0.3
    rain = np.where(wet, rng.gamma(0.8, 8, days), 0) * np.where(cloud < 0.7, 1, 0.3)
    swc = np.empty(days)
    level = 0.25
    for index in range(days):
        level = min(0.42, level + rain[index] / 300)
        level -= 0.012 * cloud[index] * (1.2 + season[index]) * min(1, level / 0.25)
        level = swc[index] = max(level, 0.06)
    radiation = np.maximum(0, np.sin(np.pi * (hour - 6) / 12)) * (550 + 350 * season[day]) * cloud[day]
    wetness = np.minimum(1, swc[day] / 0.25)
    noise = rng.normal(size=(6, time.size))
    net = 0.75 * radiation - 45 + 4 * noise[0]
    ground = 0.08 * net
    latent = np.maximum(0, 0.6 * wetness * (net - ground)) + 6 * noise[1]
    temperature = 12 + 10 * season[day] + 5 * np.sin(np.pi * (hour - 9) / 12) + rng.normal(0, 2, days)[day]
    return pl.DataFrame(
        {
            "time": time.astype("datetime64[us]"),
            "TA": temperature + 0.3 * noise[2],
            "SW_IN": radiation + np.abs(noise[3]),
            "VPD": np.maximum(0.1, 4 + 0.35 * temperature + 0.006 * radiation - 5 * (wetness - 0.5) + 0.4 * noise[4]),
            "P": np.where(hour < 4, rain[day] / 8, 0),
            "NETRAD": net,
            "G": ground,
            "LE": latent,
            "H": net - ground - latent + 6 * noise[5],
            "SWC": 100 * swc[day] + 0.05 * noise[5],
        }
    )


def stamp(column: pl.Expr) -> pl.Expr:
    """YYYYMMDDHHMM, as FLUXNET and AmeriFlux write it."""
    return column.dt.strftime("%Y%m%d%H%M")


def write_base(path: Path, frame: pl.DataFrame, site: str = "US-Fak") -> None:
    """AmeriFlux BASE: two comment lines, both stamps, -9999 for what is missing (here each 50th LE)."""
    time = pl.col("time")
    table = frame.select(
        stamp(time).alias("TIMESTAMP_START"),
        stamp(time + pl.duration(minutes=30)).alias("TIMESTAMP_END"),
        *("TA", "SW_IN", "P", "NETRAD"),
        pl.col("VPD").alias("VPD_PI"),
        pl.col("G").alias("G_1_1_1"),
        pl.when(pl.int_range(pl.len()) % 50 == 0).then(-9999.0).otherwise(pl.col("LE")).alias("LE"),
        *("H",),
        pl.col("SWC").alias("SWC_1_1_1"),
    )
    path.write_text(f"# Site: {site}\n# Version: 1-5\n" + table.write_csv(float_precision=4))


def write_fluxnet(folder: Path, frame: pl.DataFrame, site: str = "DE-Fak") -> Path:
    """A folder of FLUXNET2015 SUBSET HH with gap-filled values (QC 1) at each 40th half-hour."""
    years = f"{frame['time'].min():%Y}-{frame['time'].max():%Y}"  # type: ignore[str-format]
    time = pl.col("time")
    quality = (pl.int_range(pl.len()) % 40 == 0).cast(pl.Int8)
    names = {"TA": "TA_F", "SW_IN": "SW_IN_F", "VPD": "VPD_F", "P": "P_F", "LE": "LE_F_MDS", "H": "H_F_MDS"}
    table = frame.select(
        stamp(time).alias("TIMESTAMP_START"),
        stamp(time + pl.duration(minutes=30)).alias("TIMESTAMP_END"),
        *(pl.col(short).alias(long) for short, long in names.items()),
        *(quality.alias(f"{long}_QC") for long in names.values()),
        "NETRAD",
        pl.col("SWC").alias("SWC_F_MDS_1"),
        quality.alias("SWC_F_MDS_1_QC"),
    )
    folder.mkdir(parents=True)
    path = folder / f"FLX_{site}_FLUXNET2015_SUBSET_HH_{years}_1-4.csv"
    path.write_text(table.write_csv(float_precision=4))
    return path


def write_sdist(folder: Path, name: str, version: str, members: dict[str, bytes]) -> Path:
    """A source distribution with the given members below its top folder."""
    path = folder / f"{name}-{version}.tar.gz"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    with tarfile.open(path, "w:gz") as archive:
        for member, content in {"PKG-INFO": metadata, **members}.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{member}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path
