"""The colours of the dark theme stand twice, as CSS has no other way: for who chose it, and for whose screen is dark."""

from __future__ import annotations

import re

from tests.support.folders import ROOT

TOKENS = (ROOT / "static/css/tokens.css").read_text()


def test_who_chose_dark_sees_what_a_dark_screen_shows() -> None:
    dark = [
        re.findall(r"[\w-]+: [^;]+;", block) for block in re.findall(r"\{([^{}]*color-scheme: dark;[^{}]*)\}", TOKENS)
    ]
    chosen, by_screen = dark
    assert chosen == by_screen
    assert len(chosen) > 20
