"""A block of a YAML text replaced by that of another text: all else stays as it is written."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from flows.yaml_blocks import load, with_block, with_value
from tests.flows.rerun_project import PARAMS

OTHER = """\
sources:
    # four spaces, and a comment of its own
    alpha:
        version: 7   # seven
        members: [a,
                  b]
        note: |
            kept
              as it is

    beta: {version: 9}
land: {sites: {gamma: {path: elsewhere}}}
anchors: &common {x: 1}
aliased:
  block: *common
"""


def test_the_lines_of_a_block_move_with_their_comments_and_no_others() -> None:
    assert with_block(PARAMS, OTHER, ("sources", "alpha")) == PARAMS.replace(
        "    version: 1\n    note: >-\n      a text over\n      two lines\n",
        "      version: 7   # seven\n      members: [a,\n                b]\n      note: |\n"
        "          kept\n            as it is\n",
        1,
    )


@pytest.mark.parametrize("keys", [("land", "sites", "gamma"), ("sources", "beta"), ("aliased", "block"), ("anchors",)])
def test_blocks_in_flow_style_and_behind_aliases_are_set(keys: tuple[str, ...]) -> None:
    result = with_block(PARAMS, OTHER, keys)
    assert _at(load(result, ""), keys) == _at(load(OTHER, ""), keys)
    assert "# What the pipeline runs on." in result
    assert "  # A tower of your own is two lines." in result


@pytest.mark.parametrize("keys", [("sources", "alpha"), ("sources",), ("land", "sites"), ("land",), ("offset",)])
def test_a_block_replaced_by_itself_is_the_same_text(keys: tuple[str, ...]) -> None:
    assert with_block(PARAMS, PARAMS, keys) == PARAMS


def test_a_value_is_set_beside_its_comment() -> None:
    assert with_value(PARAMS, ("offset",), 3) == PARAMS.replace("offset: 0", "offset: 3")


SCALARS = st.none() | st.booleans() | st.integers(-9, 99) | st.text("ab #'\n-", max_size=8)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.sampled_from("xyz"), st.dictionaries(st.sampled_from("pqr"), TREES), min_size=1)


@settings(deadline=None)
@given(DOCUMENTS, DOCUMENTS, st.data(), st.booleans())
def test_the_result_reads_as_the_first_with_one_value_of_the_second(
    first: dict[str, Any], second: dict[str, Any], data: st.DataObject, flow: bool
) -> None:
    keys = [(above, key) for above, block in second.items() for key in block]
    if not keys:
        return
    key = data.draw(st.sampled_from(keys))
    result = load(with_block(_dumped(first, flow), _dumped(second, not flow), key), "")
    assert result == {**first, key[0]: {**first.get(key[0], {}), key[1]: second[key[0]][key[1]]}}


def _dumped(tree: dict[str, Any], flow: bool) -> str:
    if flow:
        return json.dumps(tree)
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    stream = io.StringIO()
    yaml.dump(tree, stream)
    return stream.getvalue()


def _at(tree: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        tree = tree[key]
    return tree
