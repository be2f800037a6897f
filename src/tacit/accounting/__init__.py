"""Events, their composed cost, and the noise that a target needs."""

from tacit.accounting import events
from tacit.accounting.accountants import (
    ACCOUNTANTS,
    Account,
    Accounts,
    Enclosures,
    account,
    bound_of,
    covers,
    profile_of,
)
from tacit.accounting.calibrate import Calibration, calibrate
from tacit.accounting.correlated import CorrelatedNoise
from tacit.accounting.curves import LossDistribution, PrivacyCurve, loss_distribution, privacy_curve
from tacit.accounting.dp_accounting import dp_accounting_source, from_dp_accounting
from tacit.accounting.events import Event
from tacit.accounting.filters import (
    AdvancedFilter,
    ApproximateFilter,
    ConcentratedFilter,
    Filter,
    GaussianFilter,
    PureFilter,
    RenyiFilter,
    filter_for,
)
from tacit.accounting.training import TrainingRun, dp_sgd

__all__ = [
    "ACCOUNTANTS",
    "Account",
    "Accounts",
    "AdvancedFilter",
    "ApproximateFilter",
    "Calibration",
    "ConcentratedFilter",
    "CorrelatedNoise",
    "Enclosures",
    "Event",
    "Filter",
    "GaussianFilter",
    "LossDistribution",
    "PrivacyCurve",
    "PureFilter",
    "RenyiFilter",
    "TrainingRun",
    "account",
    "bound_of",
    "calibrate",
    "covers",
    "dp_accounting_source",
    "dp_sgd",
    "events",
    "filter_for",
    "from_dp_accounting",
    "loss_distribution",
    "privacy_curve",
    "profile_of",
]
