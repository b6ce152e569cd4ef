"""What will run, and a stored Secret in the plan: on the page, and to whom they are shown."""

from __future__ import annotations

import re

from django.core.cache import cache

from tests.support.approvals.changes import action, planned
from tests.support.approvals.containers import AFTER, BEFORE, NEW, OLD, deployment
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened
from tests.support.provisioner.contents import an_object


def workloads_of(text: str) -> str:
    """The part of the page about workloads, "" where there is none."""
    return text.partition('id="workloads"')[2].partition("</section>")[0]


def test_images_arguments_and_variables_are_shown_old_and_new(env: World, browse: Browse) -> None:
    request = planned(env, action(AFTER, BEFORE))
    page = opened(browse(env.ada), f"/requests/{request.uid}")
    text = workloads_of(page)
    assert page.index('id="workloads"') < page.index('class="headline"')
    for words in (OLD, NEW, "arg --level=live-arg", "arg --level=debug", "env MODE=live-mode", "env MODE=fast"):
        assert words in text
    assert "env KEY from Secret keys-v2, key k" in text
    assert "env DB_PASSWORD=hidden" in text
    assert "hunter" not in text


def test_S09_no_container_is_shown_of_an_object_that_the_viewer_may_not_get(env: World, browse: Browse) -> None:
    env.kubernetes.closed = {"deployments"}
    told = []
    for before in (BEFORE, AFTER):  # whether it changes at all is not told either
        request = planned(env, action(AFTER, before))
        page = opened(browse(env.ada), f"/requests/{request.uid}")
        for words in (OLD, NEW, "live-arg", "live-mode", "keys-v"):
            assert words not in page
        told.append(workloads_of(page))
        request.delete()
    assert "Not shown: 1 object that you are not allowed to get" in " ".join(told[0].split())
    assert told[0] == told[1]


def test_S09_a_container_of_an_object_of_others_is_shown_to_who_may_get_it(env: World, browse: Browse) -> None:
    taken = action(AFTER, BEFORE, action="adopt")
    request = planned(env, taken)
    client = browse(env.ada)
    assert OLD in workloads_of(opened(client, f"/requests/{request.uid}"))
    cache.clear()
    env.kubernetes.closed = {"deployments"}
    assert OLD not in opened(client, f"/requests/{request.uid}")


def test_on_a_first_install_the_page_names_images_how_many_pods_and_accounts(env: World, browse: Browse) -> None:
    env.kubernetes.closed = {"deployments"}  # what is new is the bundle's own
    text = workloads_of(opened(browse(env.ada), f"/requests/{planned(env, action(AFTER)).uid}"))
    assert "1 new" in text
    assert f"{NEW}</ins>" in text
    assert "1 replica, account default" in text
    assert "hunter" not in text
    assert "--level" not in text


def test_S09_what_goes_and_how_it_ran_is_told_to_who_may_get_it(env: World, browse: Browse) -> None:
    gone = {**action(BEFORE, BEFORE, action="delete"), "after": None}
    request, client = planned(env, gone), browse(env.ada)
    assert OLD in workloads_of(opened(client, f"/requests/{request.uid}"))
    cache.clear()
    env.kubernetes.closed = {"deployments"}
    text = workloads_of(opened(client, f"/requests/{request.uid}"))
    assert OLD not in text
    assert "Not shown: 1 object" in text


def test_S09_an_autoscaler_that_the_viewer_may_not_get_says_nothing(env: World, browse: Browse) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "minReplicas": 41, "maxReplicas": 47}
    scaler = an_object("autoscaling/v2", "HorizontalPodAutoscaler", "web", "shop", spec=spec)
    request, client = planned(env, action(AFTER), action(scaler, scaler)), browse(env.ada)
    assert "41 to 47 replicas" in workloads_of(opened(client, f"/requests/{request.uid}"))
    cache.clear()
    env.kubernetes.closed = {"horizontalpodautoscalers"}
    text = workloads_of(opened(client, f"/requests/{request.uid}"))
    assert ("41 to 47" in text, "1 replica," in text, "Not shown" in text) == (False, True, False)


def test_hidden_characters_of_an_image_are_shown_escaped(env: World, browse: Browse) -> None:
    request = planned(env, action(deployment(f"{NEW}\u202e<b>"), BEFORE))
    text = workloads_of(opened(browse(env.ada), f"/requests/{request.uid}"))
    assert f"{NEW}\\u202e&lt;b&gt;" in text


def test_S09_the_plan_does_not_tell_whether_a_stored_secret_differs(env: World, browse: Browse) -> None:
    client, told = browse(env.ada), []
    secret = an_object("v1", "Secret", "key", "shop", data={"k": "changed"})
    request = planned(env, action(secret, secret))
    path = f"/requests/{request.uid}"
    assert "1 Secret that exists" in plan_of(opened(client, path))
    cache.clear()
    env.kubernetes.closed = {"secrets"}
    for name in ("update", "none"):
        report = request.reports.get()
        report.body["plan"]["actions"][0]["action"] = name
        report.actions = {name: 1}
        report.save()
        told.append(plan_of(opened(client, path)))
    assert "hidden" in told[0]
    assert told[0] == told[1]


def plan_of(text: str) -> str:
    """The plan of the page, and the link to it with its number."""
    link = re.search(r'<a href="#plan">.*?</a>', text, re.DOTALL)
    plan = text.partition('id="plan"')[2].partition("</section>")[0]
    return " ".join(f"{link[0] if link else ''} {plan}".split())
