"""The history of query systems (Groce 2014, 2.6): small answering services, and the attack that breaks each of them."""

from __future__ import annotations

from tacit.attacks.systems import breaks, kinds
from tacit.attacks.systems.breaks import *
from tacit.attacks.systems.kinds import *

__all__ = sorted([*breaks.__all__, *kinds.__all__])
