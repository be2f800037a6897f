"""Old names of `to_dict` work with a warning, as docs/renamed.md says."""

from __future__ import annotations

import pytest

from tacit.accounting import events, loss_distribution, privacy_curve
from tacit.anonymity.treatments.lost import Lost
from tacit.exact.canonical import formerly


def test_old_names_warn_and_give_the_same() -> None:
    noise = events.LaplaceEvent(epsilon=1.0)
    curve, losses = privacy_curve(noise, epsilons=[0.5]), loss_distribution(noise, step=0.5, points=4)
    with pytest.warns(DeprecationWarning, match=r"PrivacyCurve.to_record is now PrivacyCurve.to_dict\(\)"):
        assert curve.to_record(trade_off=True) == curve.to_dict(trade_off=True)
    with pytest.warns(DeprecationWarning, match="LossDistribution.to_record"):
        assert losses.to_record() == losses.to_dict()
    assert isinstance(vars(Lost)["record"], property)

    class Told:
        columns = (1, 2)

        def to_dict(self) -> dict[str, int]:
            return {"a": 1}

        def summary(self, times: int = 1) -> str:
            return "One. " * times

        record = formerly("record")
        words = formerly("words", "summary")
        told = formerly("told", "summary", method=True)
        held = formerly("held", "columns")

    with pytest.warns(DeprecationWarning, match=r"Told.record is now Told.to_dict\(\);"):
        assert Told().record == {"a": 1}
    with pytest.warns(DeprecationWarning, match=r"Told.words is now Told.summary\(\);"):
        assert Told().words == "One. "
    with pytest.warns(DeprecationWarning, match=r"Told.told is now Told.summary\(\);"):
        assert Told().told(times=2) == "One. One. "
    with pytest.warns(DeprecationWarning, match=r"Told.held is now Told.columns;"):
        assert Told().held == (1, 2)
