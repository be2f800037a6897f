"""Several holders: joint statistics of tables that nobody pools."""

from __future__ import annotations
