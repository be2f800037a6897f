"""How an attack is told: JSON, or a few lines; who is exposed is for the custodian's eyes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tacit.cli.output import print_json
from tacit.errors import visible

if TYPE_CHECKING:
    from tacit.attacks import Finding

__all__ = ["tell"]


def tell(
    finding: Finding, *, json: bool, show: int, sentence: str, more: Mapping[str, Any] | None = None
) -> None:
    """The numbers, then some of the people; marked as not for publication."""
    record = {**finding.record(most=show), **(more or {})}
    if json:
        print_json({**record, "not_for_publication": True})
        return
    print(f"{finding.attack}: {visible(sentence)}")
    print(f"  exposed                   {len(finding.exposed):,} of {finding.people:,} ({finding.share:.1%})")
    print(f"  guessing alone            {finding.guessing:.4g} ({finding.alone})")
    plain = {"attack", "people", "exposed", "share", "guessing", "alone", "found"}
    for name, value in record.items():
        if name not in plain and isinstance(value, str | int | float | bool):
            told = f"{value:.6g}" if isinstance(value, float) else str(value)
            print(f"  {name.replace('_', ' '):<26}{visible(told)}")
        elif name == "by_one_release":
            print(f"  by one release alone      {visible(', '.join(map(str, value)))}")
    for entry in record["found"]:
        print(f"  {visible(str(entry['who']))}: {visible(str(entry['learned']))}")
    if len(finding.exposed) > show:
        print(f"  and {len(finding.exposed) - show:,} more (--show)")
    print("Not for publication: it names people.")
