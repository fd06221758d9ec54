"""The results of the expectations as HTML: self-contained pages that give the same bytes for the same data.

The pages of Great Expectations itself carry run ids and times, and fetch styles and scripts from the network; these
hold neither. Each is one file without scripts that reads on a phone.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined

from stages.validate.expectations import Result
from stages.validate.verdicts import Judgement, failing_records

STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #1a7f45; --bad: #c0392b; --mild: #b7791f; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem; }
h1 { font-size: 1.5rem; margin: .5rem 0; }
h2 { font-size: 1.15rem; margin: 1.8rem 0 .4rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem .3rem 0; text-align: left; vertical-align: top; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.pass { color: var(--good); }
.stop, .quarantine { color: var(--bad); }
.warning { color: var(--mild); }
.badge { border: 1px solid currentColor; border-radius: 1rem; font-size: .85rem; padding: .1rem .6rem; }
.badge, summary .quarantine, summary .warning { white-space: nowrap; }
details { border-bottom: 1px solid var(--line); padding: .35rem 0; }
summary { cursor: pointer; }
details ol { font-size: .92rem; margin: .4rem 0; max-height: 24rem; overflow-y: auto; padding-left: 3rem; }
.met { columns: 18rem; font-size: .92rem; list-style: none; padding: 0; }
.note { font-size: .92rem; opacity: .75; }
dl { display: grid; gap: .15rem 1rem; grid-template-columns: minmax(5rem, max-content) 1fr; }
dt { opacity: .75; }
dd { margin: 0; overflow-wrap: anywhere; }
.grid { border-collapse: separate; border-spacing: 2px; width: auto; }
.grid td, .grid th { border: 0; font-size: .75rem; height: 1.3rem; min-width: 1.3rem; padding: 0; text-align: center; }
.grid th { font-weight: normal; opacity: .75; }
.grid th.row { padding-right: .5rem; }
.cell { border-radius: .2rem; display: inline-block; min-width: 1.3rem; text-align: center; }
.key { margin-right: 1rem; white-space: nowrap; }
td.cell { display: table-cell; }
.accepted { background: #1a7f4540; }
.warned { background: #d69e2e70; }
.quarantined { background: #c0392b; color: #fff; font-weight: bold; }
"""

PARTS = """
{% macro head(title) %}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>{{ style }}</style>
</head>
<body>
{% endmacro %}
{% macro counts_of(judgement) %}
{{ judgement.ingested }} records ingested, {{ judgement.accepted }} accepted ({{ judgement.warned }} with warnings),
{{ judgement.quarantined }} quarantined
({{ percent(judgement.quarantined_share) }}; the gate allows {{ percent(judgement.max_quarantined) }})
{%- endmacro %}
{% macro list_of(facts) %}
<dl>
{% for label, text in facts %}
<dt>{{ label }}</dt><dd>{{ text }}</dd>
{% endfor %}
</dl>
{% endmacro %}
"""

INDEX = (
    PARTS
    + """
{{ head(title) }}
<h1>{{ title }}: <span class="{{ colour(total.outcome) }}">{{ total.outcome }}</span></h1>
<p>{{ counts_of(total) }}.</p>
{% for stop in total.stops %}
<p class="stop">{{ stop }}</p>
{% endfor %}
<div class="scroll"><table>
<tr><th>{{ noun }}</th><th>outcome</th><th class="n">ingested</th><th class="n">accepted</th>
<th class="n">with warnings</th><th class="n">quarantined</th><th class="n">share</th><th class="n">limit</th></tr>
{% for page in pages %}
{% set judgement = page.judgement %}
<tr><td><a href="{{ link(page.name) }}.html">{{ page.name }}</a></td>
<td><span class="badge {{ colour(judgement.outcome) }}">{{ judgement.outcome }}</span></td>
<td class="n">{{ judgement.ingested }}</td><td class="n">{{ judgement.accepted }}</td>
<td class="n">{{ judgement.warned }}</td><td class="n">{{ judgement.quarantined }}</td>
<td class="n">{{ percent(judgement.quarantined_share) }}</td>
<td class="n">{{ percent(judgement.max_quarantined) }}</td></tr>
{% endfor %}
</table></div>
{% for heading, facts in sections %}
<h2>{{ heading }}</h2>
{{ list_of(facts) }}
{% endfor %}
<h2>Expectations</h2>
<p class="note">A record whose value is missing is not judged.</p>
<div class="scroll"><table>
<tr><th>expectation</th><th>if it fails</th><th class="n">judged</th><th class="n">not judged</th>
<th class="n">failed</th></tr>
{% for count in counts | sort(attribute="failed", reverse=true) %}
<tr><td>{{ count.expectation }}</td><td>{{ count.severity }}</td>
<td class="n">{{ count.judged }}</td><td class="n">{{ count.not_judged }}</td>
<td class="n{% if count.failed %} {{ count.severity }}{% endif %}">{{ count.failed }}</td></tr>
{% endfor %}
</table></div>
</body>
</html>
"""
)

PAGE = (
    PARTS
    + """
{% macro failed(severity, heading) %}
{% for result in page.failed(severity) %}
{% if loop.first %}
<h2>{{ heading }}</h2>
{% endif %}
<details>
<summary><span class="{{ severity }}">{{ result.rule.name }}</span>:
{{ failing(result) }} of {{ result.judged }} records</summary>
<ol>
{% if result.table_reason %}
<li>{{ result.table_reason }}</li>
{% endif %}
{% for failure in result.failures %}
<li>{{ failure.reason }}</li>
{% endfor %}
</ol>
</details>
{% endfor %}
{% endmacro %}
{{ head(title) }}
<p><a href="index.html">all {{ noun }}s</a></p>
<h1>{{ page.name }}: <span class="{{ colour(page.judgement.outcome) }}">{{ page.judgement.outcome }}</span></h1>
<p>{{ counts_of(page.judgement) }}.</p>
{% for stop in page.judgement.stops %}
<p class="stop">{{ stop }}</p>
{% endfor %}
{% if page.grid %}
<div class="scroll"><table class="grid">
<tr><th></th>{% for column in page.grid.columns %}<th>{{ column }}</th>{% endfor %}</tr>
{% for row in page.grid.rows %}
<tr><th class="row">{{ row }}</th>
{% for column in page.grid.columns %}
{% set cell = page.grid.cells.get((row, column)) %}
{% if cell %}
<td class="cell {{ cell }}" title="{{ row }} {{ column }}: {{ cell }}">{{ marks[cell] }}</td>
{% else %}
<td></td>
{% endif %}
{% endfor %}
</tr>
{% endfor %}
</table></div>
<p class="note"><span class="key"><span class="cell accepted">&nbsp;</span> accepted</span>
<span class="key"><span class="cell warned">!</span> accepted with warnings</span>
<span class="key"><span class="cell quarantined">&times;</span> quarantined</span></p>
{% endif %}
{{ failed("quarantine", "Quarantined") }}
{{ failed("warning", "Warnings") }}
<h2>Met</h2>
<ul class="met">
{% for result in page.results if result.success %}
<li>{{ result.rule.name }} <span class="note">({{ result.judged }}
{%- if result.not_judged %}, {{ result.not_judged }} not judged{% endif %})</span></li>
{% endfor %}
</ul>
{% if page.facts %}
<h2>About</h2>
{{ list_of(page.facts) }}
{% endif %}
<p class="note">The suite as Great Expectations reads it:
<a href="suites/{{ link(page.name) }}.json">suites/{{ page.name }}.json</a></p>
</body>
</html>
"""
)

MARKS = {"accepted": "", "warned": "!", "quarantined": "×"}


@dataclass(frozen=True)
class Grid:
    """Records on two axes (years and months, subjects and sessions): accepted, warned or quarantined by cell."""

    rows: Sequence[str]
    columns: Sequence[str]
    cells: Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Page:
    """What one page tells about one group of records."""

    name: str
    judgement: Judgement
    results: Sequence[Result]
    suite: Mapping[str, Any]
    facts: Sequence[tuple[str, str]] = field(default=())
    grid: Grid | None = None

    def failed(self, severity: str) -> list[Result]:
        """Failed results of one severity, those against most records first."""
        found = [result for result in self.results if not result.success and result.rule.severity == severity]
        return sorted(found, key=lambda result: -failing_records(result))


def write(
    folder: Path,
    *,
    title: str,
    noun: str,
    total: Judgement,
    pages: Sequence[Page],
    counts: Sequence[Mapping[str, Any]],
    sections: Sequence[tuple[str, Sequence[tuple[str, str]]]] = (),
) -> None:
    """Write index.html, a page for each group, and each suite as suites/NAME.json into an empty folder.

    ``folder`` is written in place: call it inside :func:`stages.artifacts.atomic`.
    """
    (folder / "suites").mkdir(parents=True)
    index = _template(INDEX).render(title=title, noun=noun, total=total, pages=pages, counts=counts, sections=sections)
    (folder / "index.html").write_text(index.strip() + "\n", encoding="utf-8")
    for page in pages:
        text = _template(PAGE).render(title=f"{title}: {page.name}", noun=noun, page=page)
        (folder / f"{page.name}.html").write_text(text.strip() + "\n", encoding="utf-8")
        suite = json.dumps(page.suite, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False)
        (folder / "suites" / f"{page.name}.json").write_text(suite + "\n", encoding="utf-8")


@functools.cache
def _template(text: str) -> Any:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.globals |= {
        "style": STYLE,
        "marks": MARKS,
        "percent": lambda value: "no records" if value is None else f"{value:.1%}",
        "colour": lambda outcome: outcome.split()[0] if outcome != "pass with quarantine" else "warning",
        "failing": failing_records,
        "link": quote,
    }
    return environment.from_string(text.lstrip())
