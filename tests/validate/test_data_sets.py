from __future__ import annotations

from stages.validate import data_sets
from stages.validate.verdicts import Judgement


def test_the_worst_data_set_is_told_first_and_one_without_quarantine_last() -> None:
    found = [Judgement(name, n, n - q, q, 0, 0.2, ()) for name, n, q in (("c", 9, 0), ("b", 9, 3), ("a", 0, 0))]
    assert [judgement.name for judgement in data_sets.worst_first(found)] == ["a", "b", "c"]


def test_the_terms_in_params_win_over_those_of_the_manifest() -> None:
    manifest = {"source": "s", "licence": "CC-BY-4.0", "citation": "A"}
    assert data_sets.terms(manifest, None, "B") == {"source": "s", "licence": "CC-BY-4.0", "citation": "B"}


def test_a_quarantined_record_with_warnings_is_shown_as_quarantined() -> None:
    assert [data_sets.state(*pair) for pair in (("accepted", None), ("accepted", "w"), ("quarantined", "w"))] == [
        "accepted",
        "warned",
        "quarantined",
    ]
