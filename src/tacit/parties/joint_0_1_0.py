"""A joint plan in the form of tacit 0.1.0, frozen here with its sentences, only to verify releases of that version.

Sessions of 0.1.0 use the first protocol, and cannot be continued. Their ids and certificates cover a digest of
request, choice and sentences. The rest of that form is in `tacit.curator.request_0_1_0`.
"""

from __future__ import annotations

from typing import Any

from tacit.curator.planning import Plan, Planned
from tacit.curator.request_0_1_0 import fit_of, plan_text
from tacit.mechanisms.base import Mechanism
from tacit.parties.joint_assignments import JointFunction, RingChance
from tacit.parties.noise import JointNoise, JointPolya, JointSkellam


def joint_text(plan: Plan) -> str:
    """The canonical text of a joint plan, in the format of 0.1.0."""
    return plan_text(plan, _mechanism)


def _mechanism(_: Plan, planned: Planned) -> dict[str, Any]:
    assignment = planned.assignment
    noise = [_noise_values(a.mechanism, list(a.parts)) for a in assignment.noise]
    said: dict[str, Any] = {"noise": noise, "numerical_delta": 0.0}
    if isinstance(assignment, JointFunction):
        fit = assignment.fit
        told = {**fit_of(fit), "noise_std": fit.widest, "noise": _law(fit.joint)}
        numbers = fit.plan.family.coefficients - 1
        reason = f"Laplace in Pólya shares on {numbers} numbers, which are the whole function"
        return {
            **said,
            "noise": [_noise_values(fit.joint, ["numbers"]), *noise],
            "chosen": reason,
            "fit": told,
        }
    first = next((m for m in assignment.mechanisms if isinstance(m, JointNoise)), None)
    if first is None:
        return {**said, "chosen": assignment.reason}
    name = "Laplace in Pólya shares" if isinstance(first, JointPolya) else "Skellam"
    return {**said, "chosen": f"{name} noise of {first.honest} honest holders"}


def _noise_values(noise: Mechanism, parts: list[str]) -> dict[str, Any]:
    if not isinstance(noise, JointNoise):
        return _law(noise)
    more = {"parts": parts, "share": f"1/{noise.honest}", "remaining": noise.remaining}
    return {**_law(noise), **more}


def _law(noise: Mechanism) -> dict[str, Any]:
    if isinstance(noise, JointPolya):
        return {
            "distribution": "discrete Laplace in Pólya shares",
            "noise_scale": str(noise.noise_scale),
            "epsilon": str(noise.exact_epsilon),
            "sensitivity": {"norm": "L1", "steps": noise.steps},
            "exact": True,
        }
    if isinstance(noise, JointSkellam):
        return {
            "distribution": "Skellam shares",
            "noise_variance": str(noise.noise_variance),
            "sensitivity": {"norm": "Linf", "steps": noise.steps, "numbers": noise.moved},
            "exact": True,
        }
    assert isinstance(noise, RingChance)
    return {"distribution": "none: the chance that a ring of masks fails", **noise.ring.to_dict()}
