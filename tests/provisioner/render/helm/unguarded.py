"""What renders charts, without those of its guards that WITHOUT names: each of the others has to hold alone."""

from __future__ import annotations

import os

from provisioner import confinement
from provisioner.chart_engine import process
from provisioner.chart_engine.lookup_process import answer_lookups

CHECKS, NETWORK, FILES, CALLS = "check_schemas", "take_network", "take_files", "take_system_calls"
GUARDS = frozenset({CHECKS, NETWORK, FILES, CALLS})

if __name__ == "__main__":
    missing = set(os.environ["WITHOUT"].split())
    for name in missing:
        setattr(*((process, name, lambda _: None) if name == CHECKS else (confinement, name, lambda **_: False)))
    process.main(answer_lookups if os.environ["ANSWERS"] else None)
