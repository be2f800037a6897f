"""Counts of counts of two published tables: how many cells hold 1, 2, 3, ... rows. Facts, with their sources.

The error of a rule that treats all cells alike depends on nothing else.
"""

from __future__ import annotations

__all__ = ["MILDEW", "MILDEW_CELLS", "NLTCS", "NLTCS_CELLS"]

NLTCS_CELLS = 1 << 16
NLTCS: dict[int, int] = {
    1: 1729, 2: 499, 3: 233, 4: 116, 5: 94, 6: 72, 7: 48, 8: 48, 9: 33, 10: 27, 11: 20, 12: 14, 13: 17,
    14: 19, 15: 7, 16: 6, 17: 10, 18: 9, 19: 14, 20: 11, 21: 11, 22: 2, 23: 6, 24: 2, 25: 3, 26: 4, 27:
    4, 28: 2, 29: 3, 30: 3, 31: 1, 32: 1, 33: 3, 34: 2, 36: 1, 37: 4, 38: 1, 39: 2, 40: 3, 42: 1, 43: 2,
    44: 3, 45: 3, 48: 1, 52: 3, 54: 1, 59: 1, 60: 1, 61: 2, 62: 2, 63: 1, 64: 3, 66: 2, 67: 3, 71: 1,
    72: 1, 74: 1, 76: 1, 78: 1, 79: 2, 80: 1, 81: 1, 82: 1, 85: 1, 90: 1, 91: 2, 94: 1, 101: 1, 102: 1,
    104: 1, 106: 1, 107: 1, 108: 1, 120: 1, 122: 1, 123: 1, 153: 1, 164: 1, 176: 1, 182: 1, 188: 1, 195:
    1, 196: 1, 198: 1, 206: 1, 216: 1, 303: 1, 351: 1, 660: 1, 1107: 1, 3853: 1,
}  # fmt: skip
"""The National Long Term Care Survey, 16 yes-or-no questions: n = 21574, 3152 of 2^16 cells occupied.

Source: StatLib; Erosheva, Fienberg, Joutard 2007; counted from the copy of Lowd and Davis 2010 (all three parts).
"""

MILDEW_CELLS = 64
MILDEW: dict[int, int] = {1: 12, 2: 1, 3: 2, 4: 4, 7: 1, 11: 1, 16: 1}
"""Barley powdery mildew, 6 loci with 2 alleles: n = 70, 22 of 64 cells occupied.

Source: Christiansen and Giese 1991; Edwards 2000 (the "Edwards" data).
"""
