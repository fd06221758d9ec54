"""Names of electrodes, units, and the format block."""

from __future__ import annotations

import warnings
from typing import Any

import mne
import numpy as np
import pytest
from pydantic import ValidationError

from stages.errors import DataError
from stages.ingest.eeg import config, names, schema
from stages.ingest.eeg.trials import in_microvolts, natural
from tests.ingest.eeg.layouts import eeg, format_of


class TestNames:
    def test_the_standard_names_are_those_of_mne(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # mne renames its montages
            montage = mne.channels.make_standard_montage("standard_1005")
        assert list(names.STANDARD) == montage.ch_names

    @pytest.mark.parametrize(
        ("order", "count"), [(names.SEED_62, 62), (names.DEAP_32, 32), (names.DREAMER_14, 14), (names.FACED_30, 30)]
    )
    def test_published_orders(self, order: tuple[str, ...], count: int) -> None:
        assert len(set(order)) == count
        assert set(names.without_position(order)) <= {"CB1", "CB2"}

    @pytest.mark.parametrize(
        ("given", "known"),
        [
            ("FCZ", "FCz"),
            ("Fc5.", "FC5"),
            ("EEG Fpz-Cz", "Fpz"),
            ("EEG C3-A2", "C3"),
            ("T3", "T3"),
            (" oz ", "Oz"),
            ("F7-T3", None),
            ("x", None),
            ("targetPosX", None),
            ("C", None),
            ("ECG", None),
        ],
    )
    def test_spellings(self, given: str, known: str | None) -> None:
        assert names.standard(given) == known

    def test_sixty_electrodes_among_other_columns(self) -> None:
        electrodes = [name.upper() for name in names.SEED_62 if not name.startswith("CB")]
        chosen = names.select(["x", "y", *electrodes, "targetPosX", "validity"])
        assert len(chosen.names) == 60
        assert chosen.indices == tuple(range(2, 62))
        assert chosen.unknown == ("x", "y", "targetPosX", "validity")

    def test_a_name_that_stands_twice(self) -> None:
        chosen = names.select(["Cz", "CZ", "Oz"])
        assert (chosen.indices, chosen.names, chosen.duplicates) == ((0, 2), ("Cz", "Oz"), ("Cz",))

    def test_numbers_inside_names_sort_as_numbers(self) -> None:
        assert sorted(["s10", "s2", "S1", "2", "10"], key=natural) == ["2", "10", "S1", "s2", "s10"]


class TestUnits:
    @pytest.mark.parametrize(("unit", "factor"), [("V", 1e-6), ("mV", 1e-3), ("uV", 1.0)])
    def test_twenty_microvolts_in_any_unit(self, unit: str, factor: float) -> None:
        values = eeg(1, 4, 500)
        np.testing.assert_allclose(in_microvolts(values * factor, unit, "f", "r"), values, rtol=1e-6)

    @pytest.mark.parametrize(
        ("std", "unit", "likely"),
        [
            (20.0, "V", "uV"),
            (20.0, "mV", "uV"),
            (2e-5, "uV", "V"),
            (0.02, "uV", "mV"),
            (2e-5, "mV", "V"),
            (1e9, "V", "counts"),
        ],
    )
    def test_a_unit_that_cannot_be_is_refused_with_one_that_can(self, std: float, unit: str, likely: str) -> None:
        with pytest.raises(DataError, match=f"f, r: found a standard deviation of .* {unit}; .*`unit: {likely}`"):
            in_microvolts(eeg(1, 4, 500) * std / 20, unit, "f", "r")

    def test_an_offset_is_no_fault(self) -> None:
        assert in_microvolts(eeg(1, 4, 500) + 4e5, "uV", "f", "r").shape == (4, 500)

    def test_one_bad_channel_does_not_condemn_the_unit(self) -> None:
        values = eeg(1, 5, 500)
        values[0] *= 1e7
        values[1] = 0
        values[2] = np.nan
        assert np.isnan(in_microvolts(values, "uV", "f", "r")[2]).all()


class TestFormat:
    @pytest.mark.parametrize("reader", [name for name in config.READERS if name != "uea"])
    def test_the_name_alone_is_a_format(self, reader: str) -> None:
        assert format_of(reader).reader == reader

    @pytest.mark.parametrize(
        ("block", "fault"),
        [
            ("seeds", "did you mean 'seed'"),
            ({"reader": "csv"}, "the readers are seed, seed_features"),
            ("uea", "Field required"),
            ({"reader": "seed", "sessions": [0]}, "greater than or equal to 1"),
            ({"reader": "deap", "threshold": 12}, "less than or equal to 9"),
            ({"reader": "edf", "pattern": "("}, "is no regular expression"),
            ({"reader": "edf", "pattern": "S1"}, "must have a group"),
            ({"reader": "edf", "events": {"labels": {}}}, "at least 1 item"),
            ({"reader": "seed", "rates": 3}, "Extra inputs are not permitted"),
        ],
    )
    def test_faults(self, block: Any, fault: str) -> None:
        with pytest.raises(ValidationError) as caught:
            format_of(block)
        assert fault in str(caught.value)

    def test_every_statistic_is_a_column(self) -> None:
        assert set(schema.STATISTICS) <= set(schema.RECORD_COLUMNS)
        assert list(schema.BANDS) == ["delta", "theta", "alpha", "beta", "gamma"]
