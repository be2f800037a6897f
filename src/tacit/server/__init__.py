"""The desk in a browser: `tacit serve`, its HTTP interface, and `tacit.connect` for programs.

The room is thin. Prices, charges, roles, approvals and certificates are those of `curator` and `ledger`. This room
adds accounts, sessions, pages and jobs. Importing this package loads nothing else (docs/server.md).
"""

from __future__ import annotations
