"""The request page: what it shows, to whom, and how it follows an apply."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.utils import timezone

from approvals.models import BundleDeployment, Cluster, Outcome, Report, Request, VoidedRound
from approvals.web.requests import request_tab
from provisioner.api_groups import OWN_GROUP
from provisioner.values import AccessAnswer, AccessRequest, Identity
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, decide, text_of
from tests.support.approvals.world import acting


class NarrowKubernetes(world.FakeKubernetes):
    """Whoever may look at requests may not for that get every object of every kind."""

    def ask(self, cluster: Cluster, identity: Identity, request: AccessRequest) -> AccessAnswer:
        if request.verb == "get" and not request.name and request.group != OWN_GROUP:
            return AccessAnswer(False, "no rule")
        return super().ask(cluster, identity, request)


def test_live_values_are_hidden_from_who_may_not_get_the_object(env: World, browse: Browse) -> None:
    env.kubernetes.allowed = {("ada", "get", ""), ("ada", "approve", "*")}
    body = scene.report_of("image-same-tag-other-bytes")
    action = body["plan"]["actions"][0]
    action["before"] = {"apiVersion": "v1", "kind": "Deployment", "spec": {"note": "live-value-of-others"}}
    body["findings"][0].update(ref=action["ref"], evidence={"was": "live-value-of-others"})
    request = scene.reported(scene.asked(env.cluster, "barge", env.rita), body)
    client = browse(env.ada)
    pages = [
        text_of(client.get(f"/requests/{request.uid}{rest}")) for rest in ("", "/findings", "/changes", "/changes/0")
    ]
    assert not any("live-value-of-others" in page for page in pages)
    assert "exists, hidden from you" in pages[1]
    assert "not allowed to see its values" in pages[3]
    env.kubernetes.allow("ada", "get", action["ref"]["name"])

    cache.clear()
    assert "live-value-of-others" in text_of(client.get(f"/requests/{request.uid}/changes/0"))


def test_all_parts_of_a_page_have_one_bound_of_questions(
    env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = NarrowKubernetes({("ada", "get", ""), ("ada", "approve", "*")})
    monkeypatch.setattr(env.kubernetes, "ask", narrow.ask)
    body = scene.report_of("image-same-tag-other-bytes")
    (action,), (finding, *_) = body["plan"]["actions"], body["findings"]
    refs = [{**action["ref"], "name": f"barge-{number}"} for number in range(request_tab.MAX_ASKED + 20)]
    body["plan"]["actions"] = [{**action, "ref": ref, "before": {"kind": "Deployment"}} for ref in refs]
    body["findings"] = [{**finding, "ref": ref, "fingerprint": f"{at:064}"} for at, ref in enumerate(refs)]
    request = scene.reported(scene.asked(env.cluster, "barge", env.rita), body)
    client = browse(env.ada)
    for rest in ("", "/findings", "/changes"):
        cache.clear()
        narrow.asked.clear()
        client.get(f"/requests/{request.uid}{rest}")
        about_objects = [asked for _, asked in narrow.asked if asked.group == "apps" and asked.verb == "get"]
        assert 0 < len(about_objects) <= request_tab.MAX_ASKED, rest
        assert sum(bool(asked.name) for asked in about_objects) <= request_tab.MAX_OBJECTS, rest
        assert len(set(about_objects)) == len(about_objects)


def test_the_printed_report_hides_what_its_reader_may_not_get(
    env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = NarrowKubernetes({("ada", "get", ""), ("ada", "approve", "*")})
    monkeypatch.setattr(env.kubernetes, "ask", narrow.ask)
    body = scene.report_of("image-same-tag-other-bytes", "secret-in-the-bundle")
    for action in body["plan"]["actions"]:
        action["before"] = {"apiVersion": "v1", "kind": action["ref"]["kind"], "spec": {"note": "live-value-of-others"}}
    told = next(one for one in body["findings"] if one["ref"] and one["ref"]["kind"] == "Secret")
    told["message"] = "differs-from-what-is-stored"
    for finding in body["findings"]:
        finding["evidence"] = {"was": "live-value-of-others"} if finding["ref"] else {}
    request = scene.reported(scene.asked(env.cluster, "barge", env.rita), body)
    client = browse(env.ada)
    text = text_of(client.get(f"/requests/{request.uid}/report.html"))
    assert "live-value-of-others" not in text
    assert "differs-from-what-is-stored" not in text
    assert "exists, hidden from you" in text
    narrow.allow("ada", "get", body["plan"]["actions"][0]["ref"]["name"])

    cache.clear()
    assert "live-value-of-others" in text_of(client.get(f"/requests/{request.uid}/report.html"))


def test_the_printed_report_may_style_itself_and_load_nothing(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    answer = browse(env.ada).get(f"/requests/{afternoon['serious'].uid}/report.html")
    policy = answer["Content-Security-Policy"]
    assert ("default-src 'none'" in policy, "style-src 'unsafe-inline'" in policy) == (True, True)
    assert "script-src" not in policy
    assert "no-store" in answer["Cache-Control"]
    assert f"/requests/{afternoon['serious'].uid}/report.html" in text_of(
        browse(env.ada).get(f"/requests/{afternoon['serious'].uid}")
    )


def test_a_request_without_a_report_has_nothing_to_print(env: World, browse: Browse) -> None:
    env.kubernetes.allow("ada", "get")
    request = scene.asked(env.cluster, "barge", env.rita)
    assert browse(env.ada).get(f"/requests/{request.uid}/report.html").status_code == 404


def test_a_finding_opens_to_its_rule_its_verdicts_and_its_evidence_in_a_table(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    text = text_of(browse(env.ada).get(f"/requests/{afternoon['serious'].uid}/findings"))
    assert "The account can read Secrets, with <code>get</code> on any name" in text
    assert "stored objects" in text
    assert "gains 3" in text
    assert '<th scope="col">binding</th>' in text


def test_what_was_there_before_is_folded_but_never_what_is_critical(env: World, browse: Browse) -> None:
    env.kubernetes.allow("ada", "get")
    body = scene.report_of("pods-own-the-node")
    body["findings"] = [{**one, "isNew": False} for one in body["findings"]]
    request = scene.reported(scene.asked(env.cluster, "barge", env.rita), body)
    shown, folded = (
        text_of(browse(env.ada).get(f"/requests/{request.uid}/findings{query}")) for query in ("", "?quiet=yes")
    )
    assert "now need the level privileged" not in shown
    assert "shares namespaces" in shown or "share namespaces" in shown
    assert "now need the level privileged" in folded
    assert "3 (0 new)" in text_of(browse(env.ada).get(f"/requests/{request.uid}"))


def test_the_values_of_a_secret_are_never_shown(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    actions = afternoon["serious"].reports.get().body["plan"]["actions"]
    position = next(number for number, one in enumerate(actions) if one["ref"]["kind"] == "Secret")
    text = text_of(browse(env.ada).get(f"/requests/{afternoon['serious'].uid}/changes/{position}"))
    assert ">data<" in text
    assert "hunter" not in text
    assert "hidden" in text or "changed" in text


@pytest.mark.parametrize("position", ["999", "99999999999999999999"])
def test_an_object_that_is_not_in_the_plan_is_not_found(
    position: str, env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    assert browse(env.ada).get(f"/requests/{afternoon['serious'].uid}/changes/{position}").status_code == 404


def test_an_object_is_a_fragment_for_htmx(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    path = f"/requests/{afternoon['serious'].uid}/changes/0"
    fragment = text_of(browse(env.ada).get(path, headers={"HX-Request": "true"}))
    assert "<html" not in fragment
    assert 'class="minus"' in fragment


@pytest.mark.parametrize(
    ("state", "trigger"),
    [
        ("preparing", "every 2s"),
        ("in_review", "every 10s"),
        ("approved", "every 2s"),
        ("applying", "every 2s"),
        ("stale", "every 2s"),
        *((state, "") for state in ("applied", "failed", "denied", "superseded", "expired", "withdrawn")),
    ],
)
def test_progress_asks_again_until_it_is_settled(
    state: str, trigger: str, env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    Request.objects.filter(pk=afternoon["serious"].pk).update(state=state)
    text = text_of(browse(env.ada).get(f"/requests/{afternoon['serious'].uid}/progress"))
    assert ("hx-trigger" in text) is bool(trigger)
    assert trigger in text


@pytest.mark.parametrize(
    ("seen", "refreshes", "tells"),
    [
        pytest.param("in_review-1", False, False, id="nothing moved"),
        pytest.param("in_review-2", False, True, id="another round while deciding"),
        pytest.param("preparing-1", True, True, id="the report is there"),
    ],
)
def test_progress_tells_that_the_page_is_old(
    seen: str, refreshes: bool, tells: bool, afternoon: dict[str, Any], browse: Browse
) -> None:
    ada = User.objects.get(username="ada")
    response = browse(ada).get(f"/requests/{afternoon['serious'].uid}/progress?seen={seen}")
    assert ("HX-Refresh" in response, "has changed since" in text_of(response)) == (refreshes, tells)


def test_who_has_decided_is_shown_what_became_of_it(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    serious = afternoon["serious"]
    world.review(serious, acting(env.ada), "Deny", reason="no")
    Request.objects.filter(pk=serious.pk).update(state="denied")
    response = browse(env.ada).get(f"/requests/{serious.uid}/progress?seen=in_review-1")
    assert response["HX-Refresh"] == "true"


def test_progress_counts_objects_and_opens_on_a_failure(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    serious = afternoon["serious"]
    Request.objects.filter(pk=serious.pk).update(state="applying")
    for position, state in enumerate(["done", "failed"]):
        Outcome.objects.create(
            request=serious,
            position=position,
            object=f"ConfigMap shop/{position}",
            action="create",
            state=state,
            message="quota exceeded" if state == "failed" else "",
            at=timezone.now(),
        )
    text = text_of(browse(env.ada).get(f"/requests/{serious.uid}/progress"))
    assert "2 of 6 objects" in text
    assert "1 failed" in text
    assert "quota exceeded" in text


@pytest.mark.parametrize("state", ["applying", "failed"])
def test_the_phase_is_shown_while_it_waits_and_where_it_ended(
    state: str, env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    """On the page and over REST, by the row alone: nobody works on it meanwhile."""
    serious, facts = afternoon["serious"], {"position": 0, "object": "ConfigMap shop/a", "action": "create"}
    Outcome.objects.create(request=serious, state="done", at=timezone.now(), **facts)
    Request.objects.filter(pk=serious.pk).update(state=state, phase="2 of 5: crds")
    text = text_of(browse(env.ada).get(f"/requests/{serious.uid}/progress"))
    assert "phase 2 of 5: crds; 1 of 6 objects" in text
    found = browse(env.ada).get(f"/api/v1/requests/{serious.uid}")
    assert found.json()["phase"] == "2 of 5: crds"


def test_a_failed_request_says_what_failed(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    failed = Request.objects.get(deployment__name="ferry")
    text = text_of(browse(env.ada).get(f"/requests/{failed.uid}"))
    assert "The registry did not answer" in text
    assert "unreachable" in text


def test_a_problem_is_shown_with_who_can_mend_it(env: World, afternoon: dict[str, Any], browse: Browse) -> None:
    request = afternoon["deleting"]
    told = {
        "problem": "held back by calm",
        "problem_code": "held-back",
        "remedy": "Somebody who may override accepts it.",
    }
    Request.objects.filter(pk=request.pk).update(**told)
    page = text_of(browse(env.ada).get(f"/requests/{request.uid}"))
    assert "What to do:" in page
    assert "Held back by calm" in page
    assert [told[name] in page for name in ("problem_code", "remedy")] == [True, True]


@pytest.mark.parametrize(
    ("state", "problem", "words"),
    [
        ("failed", "the registry did not answer", "ended before its report was ready"),
        ("preparing", "the worker lacks a right", "The report will be prepared when the request continues"),
        ("preparing", "", "Preparing the report"),
    ],
)
def test_a_request_without_a_report_says_whether_one_comes(
    state: str, problem: str, words: str, env: World, browse: Browse
) -> None:
    request = scene.asked(env.cluster, "new-one", env.rita)
    Request.objects.filter(pk=request.pk).update(state=state, problem=problem)
    text = text_of(browse(env.ada).get(f"/requests/{request.uid}"))
    told = [
        it for it in ("Preparing the report", "ended before its report", "when the request continues") if it in text
    ]
    assert words in text
    assert len(told) == 1


def test_a_request_without_a_report_says_that_it_is_being_made(env: World, browse: Browse) -> None:
    request = scene.asked(env.cluster, "new-one", env.rita)
    client = browse(env.ada)
    assert "Preparing the report" in text_of(client.get(f"/requests/{request.uid}"))
    assert client.get(f"/requests/{request.uid}/changes").status_code == 404


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("safe\u202egnp.exe", "safe\\u202egnp.exe", id="bidi"),
        pytest.param("zero\u200bwidth", "zero\\u200bwidth", id="zero width"),
        pytest.param("bell\x07", "bell\\x07", id="control"),
        pytest.param("p\u0430ypal", "p\\u0430ypal", id="look-alike"),
        pytest.param("line\u2028break", "line\\u2028break", id="line separator"),
        pytest.param("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;", id="markup"),
        pytest.param("`<img src=x>`", "<code>&lt;img src=x&gt;</code>", id="markup in backticks"),
    ],
)
def test_text_of_others_is_made_visible_on_every_page(name: str, shown: str, env: World, browse: Browse) -> None:
    body = scene.report_of("image-latest")
    body["headline"] = [f"about {name}"]
    body["findings"][0].update(message=f"found {name}", evidence={"name": name})
    request = scene.reported(scene.asked(env.cluster, "barge", env.rita), body)
    client = browse(env.ada)
    for path in (f"/requests/{request.uid}", "/?tab=all"):
        text = text_of(client.get(path))
        assert shown in text
        assert name not in text or name in shown


def test_a_reason_with_hidden_characters_is_shown_escaped(env: World, browse: Browse) -> None:
    request = world.in_review(scene.asked(env.cluster, "barge", env.rita))
    client = browse(env.ada)
    decide(client, request, reason="fine\u202e, denied")
    text = text_of(client.get(f"/requests/{request.uid}"))
    assert "\u202e" not in text
    assert "fine\\u202e, denied" in text


def test_S09_of_a_hidden_secret_the_page_says_only_that_it_exists(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    report = Report.objects.get(request=afternoon["serious"])
    secrets = [one for one in report.body["plan"]["actions"] if one["ref"]["kind"] == "Secret"]
    secrets[0]["before"] = {"kind": "Secret"}
    told = {
        "rule": "OBJ-02",
        "message": "Changes data.password of it",
        "ref": secrets[0]["ref"],
        "evidence": {"keys": ["password"]},
        "path": ["data"],
    }
    report.body["findings"].append({**report.body["findings"][0], **told})
    report.save()
    path = f"/requests/{afternoon['serious'].uid}/findings"
    assert told["message"] in text_of(browse(env.ada).get(path))
    cache.clear()
    env.kubernetes.closed = {"secrets"}
    hidden = text_of(browse(env.ada).get(path))
    assert told["message"] not in hidden
    assert "exists, hidden from you" in hidden


def test_why_the_approval_of_an_earlier_round_no_longer_counts_is_shown(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    serious = afternoon["serious"]
    VoidedRound.objects.create(
        request=serious,
        round=1,
        was_approved=True,
        code="plan-changed",
        words="the cluster changed since the review",
        objects_differing=[{"object": "ConfigMap shop/<b>", "reviewed": "update", "now": ""}],
        more_objects=3,
        at=timezone.now(),
    )
    path = f"/requests/{serious.uid}"
    assert "no longer counts" not in text_of(browse(env.ada).get(path)), "it is in its first round"
    Request.objects.filter(pk=serious.pk).update(state="stale")
    text = " ".join(text_of(browse(env.ada).get(path)).split())
    assert "The approval of round 1 no longer counts" in text
    assert "the cluster changed since the review" in text.lower()
    assert "ConfigMap shop/&lt;b&gt;</span>: reviewed as update, now no change" in text
    assert "and 3 more" in text


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("applying", "The next one starts when someone resumes the deployment."),
        ("approved", "Nothing is applied until someone resumes it."),
        ("applied", ""),
    ],
)
def test_a_pause_is_shown_while_a_request_is_open(
    state: str, words: str, env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    request = afternoon["serious"]
    Request.objects.filter(pk=request.pk).update(state=state)
    client, paths = browse(env.ada), (f"/requests/{request.uid}", f"/requests/{request.uid}/progress")
    assert all("The deployment is paused" not in text_of(client.get(path)) for path in paths)
    BundleDeployment.objects.filter(pk=request.deployment_id).update(is_paused=True, pause_reason="freeze")
    for path in paths:
        text = " ".join(text_of(client.get(path)).split())
        assert ("The deployment is paused by an unknown user: freeze." in text) is bool(words)
        assert words in text
