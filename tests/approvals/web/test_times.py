"""The words in which pages show times."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from approvals.web import tags


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (timedelta(seconds=59), "just now"),
        (-timedelta(seconds=30), "within a minute"),
        (timedelta(seconds=61), "1 min ago"),
        (timedelta(hours=2, minutes=59), "2 h ago"),
        (timedelta(hours=47, minutes=59), "1 day ago"),
        (timedelta(days=40), "40 days ago"),
        (-timedelta(hours=3, minutes=1), "in 3 h"),
        (-timedelta(days=30, seconds=-5), "in 30 days"),
        (-timedelta(days=29, hours=22), "in 29 days"),
        (-timedelta(hours=12, seconds=-5), "in 12 h"),
        (-timedelta(hours=11, minutes=50), "in 11 h"),
        (-timedelta(hours=23, minutes=59), "in 1 day"),
        (-timedelta(minutes=59, seconds=59), "in 1 h"),
    ],
    ids=str,
)
def test_a_time_is_relative_with_the_exact_one_beside(gap: timedelta, words: str) -> None:
    at = timezone.now() - gap
    assert f">{words}</time>" in tags.ago(at)
    assert f'title="{at:%Y-%m-%dT%H:%M:%SZ}"' in tags.ago(at)


def test_a_time_of_kubernetes_is_shown_as_ours_and_what_is_none_stays_text() -> None:
    at = (timezone.now() - timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert tags.ago_of(at) == f'<time datetime="{at}" title="{at}">2 h ago</time>'
    assert [tags.ago_of(text) for text in ("", "2026-13-41T00:00:00Z", "<b>")] == [
        "",
        "2026-13-41T00:00:00Z",
        "&lt;b&gt;",
    ]
