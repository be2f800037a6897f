"""Hypothesis runs the same examples every time: no test depends on luck."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "tacit",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("tacit")
