"""Cases with their true answers, of resources and of upgrades of CRDs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.folders import VECTORS


def cases(file: str) -> list[dict[str, Any]]:
    path: Path = VECTORS / file
    return json.loads(path.read_text()) if path.is_file() else []


RESOURCES = cases("custom-resource-cases.json")
UPGRADES = cases("crd-upgrade-cases.json")
