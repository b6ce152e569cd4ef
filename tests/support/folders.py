"""The checkout, and the collections of real bundles and upgrades outside of it, which not every machine has."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("PRATIQUE_CORPUS", ROOT.parent / "shared" / "corpus"))
VECTORS = Path(os.environ.get("PRATIQUE_VECTORS", ROOT.parent / "shared" / "vectors"))
