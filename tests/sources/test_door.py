"""The one door: whatever an engine says about a row, nothing of it comes out."""

from __future__ import annotations

import logging
import threading
import traceback
import warnings

import pytest

from tacit.errors import BadData, InvalidParameter, ReadFailed
from tacit.sources import error_boundary

PRIVATE = "Zebulon"


class Panic(BaseException):
    """As Polars' panics, which are no Exception."""


def failing(error):
    def action():
        try:
            raise ValueError(PRIVATE)
        except ValueError as first:
            raise error from first

    return action


ERRORS = [
    ValueError(PRIVATE),
    Panic(PRIVATE),
    MemoryError(PRIVATE),
    RecursionError(PRIVATE),
    StopIteration(PRIVATE),
]
OURS = [InvalidParameter(parameter=PRIVATE, value=3, must="not be seen"), ReadFailed(source=PRIVATE)]


@pytest.mark.parametrize("error", [*ERRORS, *OURS], ids=lambda e: type(e).__name__)
def test_rows_say_one_fixed_sentence_whatever_happens(error):
    with pytest.raises(ReadFailed) as caught:
        error_boundary.rows(failing(error), source="the table")
    assert str(caught.value) == str(ReadFailed(source="the table"))
    said(caught.value)


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_metadata_say_our_words(error):
    with pytest.raises(BadData, match="the table is odd; mend it") as caught:
        error_boundary.metadata(failing(error), source="the table", problem="is odd", hint="mend it")
    said(caught.value)


def said(error):
    assert error.__cause__ is None
    assert error.__context__ is None
    assert PRIVATE not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    "pass_",
    [error_boundary.rows, lambda a, source: error_boundary.metadata(a, source=source, problem="is odd")],
)
@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(3)], ids=lambda e: type(e).__name__)
def test_a_request_to_stop_passes_alone(pass_, stop):
    with pytest.raises(type(stop)) as caught:
        pass_(failing(stop), source="the table")
    said(caught.value)


def test_errors_of_ours_pass_where_no_row_is_read():
    with pytest.raises(InvalidParameter) as caught:
        error_boundary.metadata(
            failing(InvalidParameter(parameter="n", value=3, must="be 4")), source="t", problem="is odd"
        )
    said(caught.value)


def test_a_result_that_breaks_off_says_the_same():
    def parts():
        yield 1
        yield 2
        raise ValueError(PRIVATE)

    found = error_boundary.batches(parts, source="the table")
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(ReadFailed) as caught:
        next(found)
    said(caught.value)


def test_no_warning_and_no_log_line(caplog):
    def loud():
        warnings.warn(PRIVATE, stacklevel=1)
        logging.getLogger("py4j").error(PRIVATE)
        logging.getLogger("SQLQueryContextLogger").error(PRIVATE)
        return 5

    with warnings.catch_warnings(record=True) as kept:
        warnings.simplefilter("always")
        assert error_boundary.rows(loud, source="t") == 5
        assert not kept
        warnings.warn("mine", stacklevel=1)
        assert len(kept) == 1, "outside of the door all is as it was"
    assert not caplog.records
    logging.getLogger("py4j").error("mine")
    assert len(caplog.records) == 1


def test_threads_leave_the_filters_as_they_were():
    before, barrier = list(warnings.filters), threading.Barrier(20)
    work = [threading.Thread(target=lambda: error_boundary.rows(barrier.wait, source="t")) for _ in range(20)]
    for one in work:
        one.start()
    for one in work:
        one.join()
    assert warnings.filters == before
    assert not logging.getLogger("py4j").disabled
