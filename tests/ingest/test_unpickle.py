"""Pickles of others: what they may hold, and that nothing of theirs runs."""

from __future__ import annotations

import contextlib
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.errors import DataError
from stages.ingest import unpickle
from tests.ingest.eeg.layouts import python2


class Calls:
    """What an attacker writes: a call of any function with any arguments."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.parts = function, arguments

    def __reduce__(self) -> Any:
        return self.parts


def load(content: bytes) -> Any:
    return unpickle.load(Path("some.pkl"), content)


PLAIN = {
    "numbers": [1, 2.5, -(2**70), True, None, 1j],
    "texts": ("a", "é", b"\x00\xff", bytearray(b"\x01\x80")),
    "sets": [{1, 2}, frozenset({"a"})],
}
ARRAYS = {
    "matrix": np.arange(6.0).reshape(2, 3),
    "columns": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
    "empty": np.empty((0, 3)),
    "texts": np.array(["one", "é"]),
    "objects": np.array([1, "a", None, np.ones(2)], dtype=object),
    "big": np.arange(3, dtype=">f4"),
}


class TestWhatIsRead:
    @pytest.mark.parametrize("protocol", range(6))
    def test_arrays_scalars_and_plain_values_of_every_protocol(self, protocol: int) -> None:
        assert load(pickle.dumps(PLAIN, protocol=protocol)) == PLAIN
        for name, array in load(pickle.dumps(ARRAYS, protocol=protocol)).items():
            assert array.dtype.newbyteorder("=") == ARRAYS[name].dtype.newbyteorder("=")
            assert array.shape == ARRAYS[name].shape
            if array.dtype != object:
                np.testing.assert_array_equal(array, ARRAYS[name])
        for scalar in (np.float64(0.1), np.int32(-7), np.bool_(True), np.str_("é")):
            assert load(pickle.dumps(scalar, protocol=protocol)) == scalar

    def test_python_2_is_decoded_as_latin1(self) -> None:
        content = load(python2({"d\xe9but": np.arange(4.0).reshape(2, 2), "text": b"\xe9"}))
        assert content["text"] == "é"
        np.testing.assert_array_equal(content["début"], [[0, 1], [2, 3]])

    @given(st.recursive(st.none() | st.integers() | st.floats(allow_nan=False) | st.text(), st.lists))
    def test_what_was_written_comes_back(self, value: Any) -> None:
        assert load(pickle.dumps(value)) == value


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("value", "name"),
        [
            (Calls(os.system, "true"), ".system"),
            (Calls(eval, "1"), ".eval"),
            (Calls(getattr, "", "join"), ".getattr"),
            (Calls(np.load, "x"), "numpy.load"),
            (Calls(np.fromfile, "x"), "numpy.fromfile"),
            (Calls(list, range(3)), ".list"),
            (Path("x"), "pathlib"),
            (np.ma.masked_array([1]), "numpy.ma"),
        ],
    )
    @pytest.mark.parametrize("protocol", [0, 2, 4])
    def test_any_other_name(self, value: Any, name: str, protocol: int) -> None:
        with pytest.raises(DataError, match="a pickle that asks for") as caught:
            load(pickle.dumps(value, protocol=protocol))
        assert name in str(caught.value)
        assert "Do not open it" in str(caught.value)

    def test_nothing_has_run(self, tmp_path: Path) -> None:
        trace = tmp_path / "trace"
        with pytest.raises(DataError):
            load(pickle.dumps([Calls(os.mkdir, str(trace))]))
        assert not trace.exists()

    @pytest.mark.parametrize(
        "value",
        [
            Calls(bytearray, 10**15),
            Calls(bytes, 10**15),
            Calls(complex, b"x"),
            Calls(np.dtype, [("a", "f8")]),
        ],
    )
    def test_constructors_check_their_arguments(self, value: Any) -> None:
        with pytest.raises(DataError, match="damaged or incomplete pickle"):
            load(pickle.dumps(value))

    @pytest.mark.parametrize("kept", [0, 1, 30, 200, -1])
    def test_cut_short(self, tmp_path: Path, kept: int) -> None:
        file = tmp_path / "s01.dat"
        file.write_bytes(python2({"data": np.arange(40.0).reshape(2, 20)})[:kept])
        with pytest.raises(DataError, match=r"s01\.dat: found a damaged or incomplete pickle"):
            unpickle.load(file)

    def test_text_is_no_pickle(self) -> None:
        with pytest.raises(DataError, match="damaged or incomplete"):
            load(b"subject,label\n1,2\n")

    @given(st.binary(max_size=60))
    def test_any_bytes_give_a_value_or_this_error(self, content: bytes) -> None:
        with contextlib.suppress(DataError):
            load(content)
