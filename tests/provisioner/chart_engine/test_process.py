"""What the process that renders charts finds in them; what it renders, and what it survives, is in render/helm."""

from __future__ import annotations

import pytest

from provisioner.chart_engine.process import asks_the_time


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("# Keep false as default for now! {{ .Values.a }}", False),
        ('query: now-3h {{ .Values.a | default "}}" }} ago', False),
        ("{{/* now */}}{{- /* now {{ */}} now", False),
        ("{{ .Values.nowhere }} {{ dateModify }}", False),
        ("{{ now }}", True),
        ("{{- now | date `2006` -}}", True),
        ("{{\n  include `x` (\n    now\n  )\n}}", True),
        ('{{ "}}" | now }}', True),
        ("{{ `}}` | now }}", True),
        ("{{ '\"' }}{{ now }}{{ '\"' }}", True),
        ("{{ '}' | now }} {{ `", True),
        ('{{ "\\"}}" | ago }}', True),
        ('{{ date "15:04" "no time" }}', True),
        ("{{ durationRound .Values.since }}", True),
        ("{{ .a }", False),
        ("{{ now", True),
        ("{{/* now", True),
    ],
)
def test_only_actions_ask_for_the_time(text: str, asks: bool) -> None:
    assert asks_the_time({"values.yaml": text.encode()}, {}) == asks
    assert asks_the_time({}, {"deep": [{"er": text}]}) == asks
    assert not asks_the_time({"README.md": text.encode()}, {})


def test_a_text_of_megabytes_is_searched_at_once() -> None:
    huge = (b"{{" + b"x" * 5_000_000 + b"}}", b"{{/*" * 30_000, b"{{'" * 500_000, b'{{ "' * 500_000, b"{{`" * 500_001)
    assert not any(asks_the_time({"values.yaml": one}, {}) for one in huge)
