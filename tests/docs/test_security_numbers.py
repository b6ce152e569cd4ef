"""Bounds, times and sizes that docs/security.md names are those of the code."""

from __future__ import annotations

import re

import pytest
from django.conf import settings

from approvals import lifecycle
from approvals.gate import deletions
from approvals.health_endpoints import listener
from approvals.ledger import labels, retries
from approvals.oidc import discovery
from approvals.proxies import identity_proxies
from approvals.web.requests import diff_lines
from approvals.working import memory
from provisioner.chart_engine import limits as helm
from provisioner.cli import inputs
from provisioner.expressions import limits
from provisioner.render import scalars
from provisioner.render.limits import YamlLimits
from provisioner.review.base import difference
from tests.support.folders import ROOT

MIB = 1024 * 1024
SECONDS_A_MINUTE = 60
TEXT = " ".join((ROOT / "docs/security.md").read_text("utf-8").split())
WORDS = {2: "two", 5: "five", 10: "ten"}


def whole(number: float) -> str:
    assert number == int(number), number
    return f"{int(number):,}"


def every_seconds(task: str) -> float:
    return float(settings.CELERY_BEAT_SCHEDULE[task]["schedule"])


SENTENCES = {
    "YAML": (
        f"depth {YamlLimits().max_depth}, aliases expanded count as values,"
        f" numbers of at most {scalars.MAX_NUMBER_CHARACTERS} characters"
    ),
    "CEL": (
        f"{whole(limits.MEMORY_BYTES / MIB)} MiB, {whole(limits.CPU_SECONDS)} s of processor time and"
        f" {whole(limits.WALL_SECONDS)} s in all for an expression,"
        f" {whole(limits.BATCH_SECONDS)} s for those that are asked together"
    ),
    "priority": f"(nice 0 to {memory.LOWEST})",
    "bodies": f"| request bodies | {whole(settings.DATA_UPLOAD_MAX_MEMORY_SIZE / MIB)} MiB |",
    "lines": (
        f"{whole(diff_lines.MAX_SHOWN)} at first and {whole(diff_lines.CHUNK)} more at a time;"
        f" {whole(difference.MAX_CHARACTERS)} characters of each, {whole(difference.MAX_FULL)} of one that is opened"
    ),
    "objects of the command line": (
        f"`--objects` with {whole(inputs.MAX_FILES)} files, {whole(inputs.MAX_BYTES / MIB)} MiB"
    ),
    "objects of a CRD": (
        f"{whole(deletions.LOOK_SECONDS)} s for all kinds, {WORDS[deletions.LOOKS_AT_ONCE]} requests of a cluster at once"
    ),
    "charts": (
        f"{helm.MEMORY_BYTES // 2**20} MiB, {helm.CPU_SECONDS} s of processor time and {whole(helm.WALL_SECONDS)} s in all, "
        f"{helm.MAX_OUTPUT_BYTES // 2**20} MiB of output"
    ),
    "charts that a process renders": (
        f"at most {helm.MAX_KEPT_SECONDS} s of processor time and {helm.MAX_KEPT_BYTES // 2**20} MiB"
    ),
    "rarely": f"up to every {whole(retries.LONGEST_SECONDS / SECONDS_A_MINUTE)} minutes",
    "rounds": f"after {WORDS[lifecycle.MAX_ROUNDS]} rounds it ends, and says why",
    "rounds of labels": f"{WORDS[lifecycle.MAX_ROUNDS]} rounds, then it ends in words; past {WORDS[labels.MAX_KEPT]} sets",
    "rounds of collisions": f"{WORDS[lifecycle.MAX_ROUNDS]} for one that went, then a person denies or it expires",
    "ended sessions": f"are deleted every {WORDS[int(every_seconds('forget') / SECONDS_A_MINUTE)]} minutes",
    "an issuer that is away": f"one thread waits, every {whole(discovery.ASK_AGAIN_SECONDS)} s",
    "a slow issuer": f"an issuer whose answer drips | cut off after {whole(discovery.ANSWER_SECONDS)} s",
    "a slow probe": f"each scrape is answered; cut off after {whole(listener.HEAD_SECONDS)} s",
    "the memory": f"The memory is looked at {whole(1 / memory.TICK_SECONDS)} times a second: what takes the last tenth",
}
# Of what was tried, the number that has to be past a bound of ours.
TRIED = {
    "connections to the listener": (r"\| (\d+) silent or half connections to the listener", listener.MAX_OPEN),
    "characters of a name": (r"no ASCII, (\d+) characters \|", identity_proxies.MAX_CHARACTERS),
    "days of a token": (r"\| an API token of (\d+) days", settings.PRATIQUE["TOKEN_DAYS"]),
}


@pytest.mark.parametrize("what", SENTENCES)
def test_a_bound_on_the_page_is_the_bound_of_the_code(what: str) -> None:
    assert SENTENCES[what] in TEXT


@pytest.mark.parametrize("what", TRIED)
def test_what_was_tried_is_past_the_bound(what: str) -> None:
    pattern, bound = TRIED[what]
    found = re.search(pattern, TEXT)
    assert found and int(found[1]) > bound


def test_the_last_tenth_of_the_memory_is_what_is_left() -> None:
    assert memory.NEAR == 0.9


def test_every_duration_in_the_table_of_limits_is_checked() -> None:
    """A new number with a unit in the table of limits needs a sentence above."""
    table = TEXT.split("## Limits on what others write", 1)[1].split("\n## ", 1)[0].split("## What counts", 1)[0]
    held = " ".join(sentence for sentence in SENTENCES.values() if sentence in table)
    numbers = re.findall(r"\b[\d,]*\d (?:MiB|s|characters|more)\b", table)
    assert numbers, "the table has none"
    assert [number for number in numbers if number not in held] == []
