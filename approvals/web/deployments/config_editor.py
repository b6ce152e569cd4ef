"""The config of a deployment in its form: which keys are offered, and one more in what is typed. Nothing is written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from django.forms import ValidationError
from django.http import HttpRequest, HttpResponse

from approvals import access
from approvals.models import BundleDeployment, Request
from approvals.web.access_decorators import of_deployment, only_by_form, person, signed_in
from approvals.web.deployments.spec_form import SpecForm
from approvals.web.rendering import page
from provisioner.masking import HIDDEN, is_credential
from provisioner.render import list_config_keys, write

MOST_OFFERED = 1_000
MAX_PATH = 500
MAX_STEPS = 50
VALUES = "values."
_STEP = re.compile(r"(?:\\.|[^.\\])+")


@dataclass(frozen=True, slots=True)
class OfferedKeys:
    """Keys by their path, each with the value that is put in; `has_chart`: those of the chart are among them."""

    format: str
    values: Mapping[str, Any]
    has_chart: bool = False


def offered_keys(http: HttpRequest, format_name: str, deployment: BundleDeployment | None) -> OfferedKeys:
    """What the format takes, and of a chart the values that it had when the deployment was last rendered, for who may
    get the BundleDeployment: some of them stand in its config."""
    found, name, chart = list_config_keys(format_name), format_name, dict[str, str]()
    if deployment and "values" in found and _may_see(http, deployment):
        chart = dict(_chart_values(deployment))
    found |= {f"{VALUES}{path}": _default_of(path, text) for path, text in sorted(chart.items())[:MOST_OFFERED]}
    return OfferedKeys(name, found, bool(chart))


def _chart_values(deployment: BundleDeployment) -> Mapping[str, str]:
    rows = Request.objects.filter(deployment=deployment, chart_values__isnull=False).order_by("-number")
    return rows.values_list("chart_values", flat=True).first() or {}


def _may_see(http: HttpRequest, deployment: BundleDeployment) -> bool:
    who, name = person(http), deployment.name
    return access.may(who, deployment.cluster, "get", resource="bundledeployments", name=name).allowed


def _default_of(path: str, text: str) -> Any:
    """The value that the chart had, as it was recorded; "" for one that is hidden or was cut."""
    if HIDDEN in text or is_credential(path):
        return ""
    try:
        return json.loads(text)
    except ValueError:
        return ""


@only_by_form
@signed_in
def add_key(http: HttpRequest) -> HttpResponse:
    """The editor with one key more, for the form of a new deployment."""
    return _answer(http, None)


@only_by_form
@of_deployment
def add_key_of(http: HttpRequest, deployment: BundleDeployment) -> HttpResponse:
    """The same for the form of a deployment, whose readers know the values of its chart."""
    return _answer(http, deployment)


def _answer(http: HttpRequest, deployment: BundleDeployment | None) -> HttpResponse:
    form = SpecForm(initial=http.POST.dict())
    path, text = http.POST.get("config_key", "").strip()[:MAX_PATH], http.POST.get("config", "")
    keys = offered_keys(http, form.format(), deployment)
    try:
        config = form.fields["config"].clean(text)
        note, changed = put_key(config, path, keys)
    except ValidationError as exc:
        note, changed = f"Nothing was added: {' '.join(exc.messages)}", None
    if changed is not None:
        form.initial["config"] = write(changed)
    facts = {"form": form, "offered_keys": keys, "note": note}
    return page(http, "deployments/_config_editor.html", facts)


def put_key(config: Mapping[str, Any], path: str, keys: OfferedKeys) -> tuple[str, dict[str, Any] | None]:
    """What is said to who asks for a key, and the config with it; None where it stays as it is."""
    steps = [step.replace("\\", "") for step in _STEP.findall(path)]
    if not 0 < len(steps) <= MAX_STEPS:
        return "Type or pick the path of a key first.", None
    is_known = path in keys.values
    if not is_known and keys.values and not path.startswith((VALUES, "commonLabels.")):
        meant = get_close_matches(path, keys.values, 1)
        hint = f"; did you mean {meant[0]}?" if meant else ""
        return f"Nothing was added: format {keys.format} has no config key {path}{hint}", None
    changed: dict[str, Any] = deepcopy(dict(config))
    inside: Any = changed
    for number, step in enumerate(steps[:-1]):
        inside = inside.setdefault(step, {})
        if not isinstance(inside, dict):
            return f"Nothing was added: {'.'.join(steps[: number + 1])} is no mapping.", None
    if steps[-1] in inside:
        return f"{path} is there already.", None
    inside[steps[-1]] = deepcopy(keys.values.get(path, ""))
    if is_known or not keys.has_chart:
        return f"{path} was added.", changed
    meant = get_close_matches(path, keys.values, 1)
    hint = f"; did you mean {meant[0]}?" if meant else ""
    return f"{path} was added, but the chart had no such value when it was last rendered{hint}", changed
