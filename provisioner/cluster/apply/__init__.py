"""The writes: an approved plan phase by phase, and what was approved put back where others changed it.

- `run`: an approved plan, phase by phase, and its end
- `correction`: one object of a revision put back
"""

__all__ = [
    "correction",
    "run",
]
