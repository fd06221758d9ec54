"""SUMO's programs: found, run to their end, stopped, and their errors."""

from __future__ import annotations

import importlib.util

import pytest

from stages.errors import StageError
from stages.simulate.traffic import programs


def test_sumo_is_found_with_its_programs() -> None:
    assert (programs.home() / "bin" / "sumo").exists()
    assert programs.version().startswith("1.")


def test_without_sumo_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(StageError, match=r"no module 'sumo' found; expected the package eclipse-sumo.*pip install"):
        programs.run("sumo")


def test_a_program_that_is_missing_is_named() -> None:
    with pytest.raises(StageError, match=r"somu: No such file or directory\. Install eclipse-sumo again"):
        programs.run("somu")


def test_an_error_of_sumo_is_passed_on() -> None:
    with pytest.raises(StageError, match=r"sumo of eclipse-sumo 1.* stopped with exit code 1 and said: .*nothing\.xml"):
        programs.run("sumo", "--net-file", "nothing.xml", "--xml-validation", "never")
