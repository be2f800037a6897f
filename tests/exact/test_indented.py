"""The text of a certificate is that of Python's own encoder, made faster."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.exact.canonical import indented

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
        | st.dictionaries(st.integers() | st.none() | st.booleans(), inner, max_size=3)
    ),
    max_leaves=30,
)


@given(VALUES)
def test_it_is_the_text_of_the_standard_library(value: Any) -> None:
    assert indented(value) == json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


@pytest.mark.parametrize("value", [math.nan, math.inf, [-math.inf], {"a": {1: math.nan}}])
def test_what_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        indented(value)


def test_what_has_no_text_is_refused() -> None:
    with pytest.raises(TypeError):
        indented({"a": object()})
