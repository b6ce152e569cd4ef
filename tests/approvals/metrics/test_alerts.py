"""The alert rules that are shipped: they are valid, they name what there is, they fire when they should, and only then."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.approvals.metrics.catalogue import Known, known
from tests.support.folders import ROOT

RULES = ROOT / "deploy/prometheus/alerts.yaml"
DOCS = ROOT / "docs/operating/metrics.md"
ALERTS: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
]
# Of Prometheus itself, and of its language.
THEIRS = {"up", "job", "le"}
MINUTES = 180


def buckets(metric: str, labels: str, counts: dict[str, str]) -> dict[str, str]:
    """The series of a histogram, by its upper bounds."""
    return {f'{metric}_bucket{{{labels},le="{bound}"}}': values for bound, values in counts.items()}


NONE, ALL = "0x180", "0+5x180"
WATCH_LAG = ("pratique_watch_lag_seconds", 'cluster="prod"')
PAGES = ("pratique_http_request_seconds", 'view="inbox"')
# By alert: series that make it fire, and series that come close and do not. Values are Prometheus' "start+step x times".
FIRES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "PratiqueProcessDown": ({'up{job="pratique",instance="a"}': "0x180"}, {'up{job="pratique",instance="a"}': "1x180"}),
    "PratiqueNotScraped": ({"other": "1x180"}, {"pratique_database_up": "1x180"}),
    "PratiqueDatabaseAway": (
        {'pratique_database_up{pod="a"}': "0x180", 'pratique_database_up{pod="b"}': "0x180"},
        {'pratique_database_up{pod="a"}': "0x180", 'pratique_database_up{pod="b"}': "1x180"},
    ),
    "PratiqueQueueAway": ({"pratique_queue_up": "0x180"}, {"pratique_queue_up": "1x180"}),
    "PratiqueQueueLong": ({"pratique_queue_messages": "501x180"}, {"pratique_queue_messages": "499x180"}),
    "PratiqueContentStoreAway": ({"pratique_content_store_up": "0x180"}, {"pratique_content_store_up": "1x180"}),
    "PratiqueContentStoreFull": (
        {"pratique_content_store_free_bytes": "9x180", "pratique_content_store_size_bytes": "100x180"},
        {"pratique_content_store_free_bytes": "11x180", "pratique_content_store_size_bytes": "100x180"},
    ),
    "PratiqueWorkStuck": (
        {'pratique_idlest_request_seconds{state="preparing"}': "4000x180"},
        {'pratique_idlest_request_seconds{state="in_review"}': "4000x180"},
    ),
    "PratiqueReviewWaits": (
        {'pratique_idlest_request_seconds{state="in_review"}': "90000x180"},
        {'pratique_idlest_request_seconds{state="in_review"}': "80000x180"},
    ),
    "PratiqueStepsCrash": (
        {'pratique_steps_total{step="apply",outcome="crashed"}': "0x100 0+1x80"},
        {'pratique_steps_total{step="apply",outcome="failed"}': "0+1x180"},
    ),
    "PratiqueTasksCrash": (
        {'pratique_tasks_total{task="approvals.sweep",outcome="crashed"}': "0+1x180"},
        {'pratique_tasks_total{task="approvals.sweep",outcome="done"}': "0+1x180"},
    ),
    "PratiqueUncaughtExceptions": (
        {'pratique_uncaught_exceptions_total{where="thread"}': "0x170 1x10"},
        {'pratique_uncaught_exceptions_total{where="thread"}': "1x180"},
    ),
    "PratiqueClaimsLapsed": (
        {'pratique_request_claims{state="lapsed"}': "1x180"},
        {'pratique_request_claims{state="held"}': "1x180"},
    ),
    "PratiqueWorkersDie": (
        {'pratique_request_worker_deaths{pod="a"}': "1x180"},
        {'pratique_request_worker_deaths{pod="a"}': "0x180"},
    ),
    "PratiqueClaimsLost": (
        {'pratique_lost_claims_total{kind="request"}': "0+1x180"},
        {'pratique_lost_claims_total{kind="request"}': "0x160 1x20"},
    ),
    "PratiqueRequestsFail": (
        {
            'pratique_settled_requests{state="failed",pod="a"}': "6x180",
            'pratique_settled_requests{state="failed",pod="b"}': "6x180",
            'pratique_settled_requests{state="applied",pod="a"}': "5x180",
        },
        {
            'pratique_settled_requests{state="failed",pod="a"}': "6x180",
            'pratique_settled_requests{state="failed",pod="b"}': "6x180",
            'pratique_settled_requests{state="applied",pod="a"}': "7x180",
        },
    ),
    "PratiqueClusterNotReached": (
        {'pratique_cluster_contact_seconds{cluster="prod"}': "0+60x180"},
        {'pratique_cluster_contact_seconds{cluster="prod"}': "800x180"},
    ),
    "PratiqueClusterTrouble": (
        {'pratique_cluster_trouble{cluster="prod"}': "1x180"},
        {'pratique_cluster_trouble{cluster="prod"}': "0x180"},
    ),
    "PratiqueClusterCredentialsEnd": (
        {'pratique_cluster_credentials_left_seconds{cluster="prod"}': "604000x180"},
        {'pratique_cluster_credentials_left_seconds{cluster="prod"}': "605000x180"},
    ),
    "PratiqueClusterNotWatched": (
        {'pratique_cluster_watched{cluster="prod"}': "0x180", 'pratique_cluster_watched{cluster="other"}': "1x180"},
        {'pratique_cluster_watched{cluster="prod"}': "1x180"},
    ),
    "PratiqueWatchLags": (
        buckets(*WATCH_LAG, {"60": NONE, "300": ALL, "+Inf": ALL}),
        buckets(*WATCH_LAG, {"60": ALL, "300": ALL, "+Inf": ALL}),
    ),
    "PratiqueWatchBreaks": (
        {'pratique_watch_breaks_total{cluster="prod"}': "0+3x180"},
        {'pratique_watch_breaks_total{cluster="prod"}': "0+1x180"},
    ),
    "PratiqueApiSlow": (
        buckets("pratique_api_call_seconds", 'cluster="prod",verb="get"', {"5": NONE, "10": ALL, "+Inf": ALL}),
        buckets("pratique_api_call_seconds", 'cluster="prod",verb="watch"', {"5": NONE, "10": ALL, "+Inf": ALL}),
    ),
    "PratiqueApiFails": (
        {
            'pratique_api_calls_total{cluster="prod",verb="get",outcome="no_answer"}': "0+2x180",
            'pratique_api_calls_total{cluster="prod",verb="get",outcome="ok"}': "0+10x180",
        },
        {
            'pratique_api_calls_total{cluster="prod",verb="get",outcome="not_found"}': "0+9x180",
            'pratique_api_calls_total{cluster="prod",verb="get",outcome="ok"}': "0+10x180",
        },
    ),
    "PratiqueApplySlow": (
        buckets("pratique_step_seconds", 'step="apply"', {"300": NONE, "900": "0+1x180", "+Inf": "0+1x180"}),
        buckets("pratique_step_seconds", 'step="prepare"', {"300": NONE, "900": "0+1x180", "+Inf": "0+1x180"}),
    ),
    "PratiqueQuotaNear": (
        {
            'pratique_requests{cluster="prod",state="in_review",pod="a"}': "90x180",
            'pratique_requests{cluster="prod",state="in_review",pod="b"}': "90x180",
            'pratique_requests{cluster="prod",state="preparing",pod="a"}': "80x180",
            "pratique_max_open_requests": "200x180",
        },
        {
            'pratique_requests{cluster="prod",state="in_review",pod="a"}': "90x180",
            'pratique_requests{cluster="prod",state="in_review",pod="b"}': "90x180",
            "pratique_max_open_requests": "200x180",
        },
    ),
    "PratiqueDrift": (
        {'pratique_open_drifts{cluster="prod"}': "1x180"},
        {'pratique_open_drifts{cluster="prod"}': "0x130 1x50"},
    ),
    "PratiqueDriftFight": (
        {'pratique_drift_fights{cluster="prod"}': "1x180"},
        {'pratique_drift_fights{cluster="prod"}': "0x180"},
    ),
    "PratiqueUnhealthy": (
        {'pratique_deployments{cluster="prod",health="Failed"}': "1x180"},
        {'pratique_deployments{cluster="prod",health="InProgress"}': "1x180"},
    ),
    "PratiqueReviewOverdue": ({"pratique_reviews_overdue": "1x180"}, {"pratique_reviews_overdue": "0x180"}),
    "PratiqueChatDecisionsWait": (
        {"pratique_oldest_chat_delivery_seconds": "301x180"},
        {"pratique_oldest_chat_delivery_seconds": "10x180"},
    ),
    "PratiqueSignInsRefused": (
        {'pratique_refused_sign_ins_total{door="password"}': "0+5x180"},
        {'pratique_refused_sign_ins_total{door="password"}': "0+2x180"},
    ),
    "PratiqueCallbacksRefused": (
        {'pratique_refused_callbacks_total{tool="slack",reason="unverified"}': "0+2x180"},
        {'pratique_refused_callbacks_total{tool="slack",reason="unverified"}': "0x170 1x10"},
    ),
    "PratiqueWakesNotSent": ({"pratique_unsent_wakes_total": "0+2x180"}, {"pratique_unsent_wakes_total": "5x180"}),
    "PratiqueHttpErrors": (
        {
            'pratique_http_requests_total{view="inbox",method="GET",status="500"}': "0+1x180",
            'pratique_http_requests_total{view="inbox",method="GET",status="200"}': "0+10x180",
        },
        {
            'pratique_http_requests_total{view="inbox",method="GET",status="404"}': "0+9x180",
            'pratique_http_requests_total{view="inbox",method="GET",status="200"}': "0+10x180",
        },
    ),
    "PratiqueHttpSlow": (
        buckets(*PAGES, {"5": NONE, "10": ALL, "+Inf": ALL}),
        buckets(*PAGES, {"5": ALL, "10": ALL, "+Inf": ALL}),
    ),
}


def promtool(*words: str | Path) -> str:
    program = shutil.which("promtool")
    assert program, "promtool is not installed: run tests/install"
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def metrics(db: None, redis: str, settings: Any) -> list[Known]:
    settings.PRATIQUE = {**settings.PRATIQUE, "REDIS_URL": redis}
    return known()


@pytest.mark.services
def test_prometheus_takes_the_rules() -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", RULES)


def test_the_rules_name_only_metrics_and_labels_that_there_are(metrics: list[Known]) -> None:
    samples = {name: one for one in metrics for name in one.samples}
    for rule in ALERTS:
        used = set(re.findall(r"\b(?:pratique_\w+|up)\b", rule["expr"]))
        assert used <= samples.keys() | THEIRS, rule["alert"]
        labels = set(re.findall(r"(\w+)\s*(?:=~|!=|=(?!=))", rule["expr"]))
        for by in re.findall(r"\bby \(([^)]*)\)", rule["expr"]):
            labels |= {one.strip() for one in by.split(",")}
        theirs = {label for name in used & samples.keys() for label in samples[name].labels}
        assert labels <= theirs | THEIRS, rule["alert"]
        shown = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["description"]))
        assert shown <= theirs | {"instance"}, rule["alert"]


@pytest.mark.parametrize("rule", ALERTS, ids=[rule["alert"] for rule in ALERTS])
def test_each_alert_says_what_happened_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["annotations"].keys() == {"summary", "description", "what_to_do"}
    assert all(words.endswith(".") for name, words in rule["annotations"].items() if name != "summary")
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}


@pytest.mark.thorough
@pytest.mark.services
def test_each_alert_fires_when_it_should_and_only_then(tmp_path: Path) -> None:
    assert FIRES.keys() == {rule["alert"] for rule in ALERTS}
    tests = []
    for rule in ALERTS:
        firing, close = FIRES[rule["alert"]]
        for series, does_fire in ((firing, True), (close, False)):
            count = f'count(ALERTS{{alertname="{rule["alert"]}", alertstate="firing"}}) or vector(0)'
            told = [{"labels": "{}", "value": int(does_fire)}]
            tests.append(
                {
                    "name": f"{rule['alert']} {'fires' if does_fire else 'is silent'}",
                    "interval": "1m",
                    "input_series": [{"series": name, "values": values} for name, values in series.items()],
                    "promql_expr_test": [{"expr": count, "eval_time": f"{MINUTES}m", "exp_samples": told}],
                }
            )
    path = tmp_path / "alerts_test.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    promtool("test", "rules", path)


def test_the_page_about_metrics_lists_exactly_what_there_is(metrics: list[Known]) -> None:
    rows = [line for line in DOCS.read_text().splitlines() if line.startswith("| `pratique_")]
    assert rows == [one.row for one in metrics]


def test_the_page_about_metrics_lists_exactly_the_alerts() -> None:
    rows = [line for line in DOCS.read_text().splitlines() if line.startswith("| `Pratique")]
    expected = [
        f"| `{one['alert']}` | {one['labels']['severity']} | {one['annotations']['summary']}"
        f" | {one['annotations']['what_to_do']} |"
        for one in ALERTS
    ]
    assert rows == expected


def test_every_label_is_of_a_closed_set(metrics: list[Known]) -> None:
    """S29: another label needs a thought about who chooses its values, and how many there are."""
    closed = {
        *("cluster", "state", "code", "health", "verb", "outcome", "step", "task", "kind", "where"),
        *("view", "method", "status", "door", "tool", "reason"),
    }
    assert {label for one in metrics for label in one.labels} == closed
