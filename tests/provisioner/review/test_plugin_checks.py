"""Checks of other packages: one that is broken makes each report say "unknown" with its name, and stops no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from provisioner.plugins import PluginGroup
from provisioner.review import plugin_checks
from provisioner.review.base.claims import EVERY_KIND, Claim
from provisioner.review.base.facts import Check, Listing
from provisioner.review.base.record import to_record
from provisioner.review.frame import CHECKS as OURS
from provisioner.review.frame import check_plugins, installed_checks, listings, mentioned, report, wanted
from provisioner.review.plugin_checks import MAX_ASKED, MAX_FINDINGS
from provisioner.values import Action, Finding, ObjectRef, Report, Severity
from tests.support.plugins import PluginPath
from tests.support.provisioner.contents import an_object, config_map, facts, planned

CHECKS = PluginGroup.CHECKS
EVERYTHING = (Claim("TAROT-01", EVERY_KIND, ("*",)),)
GIVEN = facts(planned(config_map("tide-east", metres="7"), Action.CREATE))
IMPORTS = """
import itertools
import threading
from dataclasses import replace
from provisioner.review.base.claims import EVERY_KIND, Claim
from provisioner.review.base.facts import Check, Listing, ReviewRule
from provisioner.values import Finding, ObjectRef, Section, Severity

RULE = ReviewRule("TAROT-01", Section.OBJECTS, Severity.NOTABLE)
REF = ObjectRef("", "v1", "ConfigMap", "shop", "tide-east")
ONE = RULE.at(REF, "a card was drawn", evidence={"card": "moon"})

def raised(error):
    raise error

def drawing(*_):
    yield ONE
    raise SystemExit("Pl4nted")

EVERYTHING = (Claim("TAROT-01", EVERY_KIND, ("*",)),)

def everything(_):
    return True

CHECK = """


SPOIL = """

def spoil_all(manifests):
    for one in manifests:
        one.body.clear()
    return ()

def spoil(facts):
    for one in facts.plan.actions:
        one.after["data"] = {"metres": "0"}
    return ()

CHECK = Check('x', changes=spoil, wants=lambda content, plan: spoil_all(content.manifests))
"""


def add(plugin_path: PluginPath, code: str, package: str = "cards", name: str = "tarot") -> None:
    plugin_path.add(package, {CHECKS: {name: f"{package}:CHECK"}}, f"{IMPORTS}{code}")


def crashes(found: Report) -> list[Finding]:
    return [finding for finding in found.findings if finding.rule == "CRASHED"]


def rules(found: Report) -> set[str]:
    return {finding.rule for finding in found.findings}


def test_a_check_that_pip_installed_finds_something(tides: Path) -> None:
    found = report(GIVEN)
    (flood,) = [finding for finding in found.findings if finding.rule == "TIDE-01"]
    assert (flood.severity, flood.message) == (
        Severity.DANGEROUS,
        "High water at east is 7.0 m, and its quay has 5.0 m",
    )
    assert [plugin.problem for plugin in check_plugins()] == [""]


def test_without_plugins_there_are_only_our_checks() -> None:
    assert [check.name for check in installed_checks() if check.plugin] == []


@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param("1/0", "ZeroDivisionError", id="raises while loading"),
        pytest.param("raised(SystemExit(0))", "SystemExit", id="ends the process while loading"),
        pytest.param("{}", "is of the type dict; expected a Check", id="no Check"),
        pytest.param("Check('x', settles=everything)", "expected a Check without settles", id="settles"),
        pytest.param("Check('x', changes=drawing)", "SystemExit at cards.py", id="ends the process"),
        pytest.param("Check('x', standing=drawing)", "SystemExit at cards.py", id="ends the process, standing"),
        pytest.param("Check('x', claims=everything)", "whose claims are a tuple of Claim", id="claims as a function"),
        pytest.param("Check('x', claims=('spec',))", "whose claims are a tuple of Claim", id="claims as texts"),
        *(
            pytest.param(f"Check('x', claims=(Claim({claim}),))", "that name rules of its own", id=name)
            for name, claim in [
                ("claims a path that is none", "'TAROT-01', EVERY_KIND, ('spec.[x',)"),
                ("claims one text as paths", "'TAROT-01', EVERY_KIND, 'spec'"),
                ("claims for kinds that are texts", "'TAROT-01', frozenset({'ConfigMap'}), ('spec',)"),
                ("claims for a rule of ours", "'UNJUDGED', EVERY_KIND, ('spec',)"),
            ]
        ),
        pytest.param("Check('x', wants=lambda *_: raised(KeyError()))", "KeyError", id="while asking for objects"),
        pytest.param("Check('x', mentions=lambda _: raised(KeyError()))", "KeyError", id="while mentioning"),
        pytest.param("Check('x', lists=lambda _: raised(KeyError()))", "KeyError", id="while asking for lists"),
        pytest.param("Check('x', wants=lambda *_: [None])", "asks for a NoneType", id="wants nothing real"),
        pytest.param("Check('x', wants=lambda *_: ['x'])", "asks for a str; expected ObjectRef", id="wants a text"),
        pytest.param("Check('x', mentions=lambda _: [replace(REF, name=1)])", "asks for", id="a name that is none"),
        pytest.param("Check('x', lists=lambda _: [REF])", "expected Listing", id="lists an object"),
        pytest.param("Check('x', lists=lambda _: [Listing('', 'v1', 'Pod', is_counted=2)])", "Listing", id="a switch"),
        pytest.param("Check('x', mentions=lambda _: itertools.repeat(REF))", "asks for more than", id="asks on and on"),
        pytest.param("Check('x', changes=lambda _: None)", "TypeError", id="finds nothing that is a list"),
        pytest.param("Check('x', changes=None)", "TypeError", id="no function"),
        pytest.param("Check('x', changes=lambda _: ['x'])", "it found a str; expected Finding", id="finds a text"),
        pytest.param("Check('x', changes=lambda _: itertools.repeat(ONE))", "more than 2,000 findings", id="no end"),
        *(
            pytest.param(f"Check('x', changes=lambda _: [replace(ONE, {field}={value})])", f"no sound {field}", id=name)
            for name, field, value in [
                ("a rule that is none", "rule", "'../etc'"),
                ("a rule of ours", "rule", "'UNCLAIMED'"),
                ("a severity that is none", "severity", "'high'"),
                ("a section that is none", "section", "'objects'"),
                ("no words", "message", "''"),
                ("words of many lines", "message", "'a\\nb'"),
                ("endless words", "message", "'a' * 5000"),
                ("half a character", "message", "'\\ud800'"),
                ("an object that is a text", "ref", "'ConfigMap'"),
                ("a path that is a text", "path", "'spec'"),
                ("a path of floats", "path", "(1.5,)"),
                ("evidence that is a list", "evidence", "[1]"),
                ("verdicts", "verdicts", "{'api': Severity.SAFE}"),
                ("a private one", "is_private", "True"),
                ("a fingerprint that is too long", "fingerprint", "'a' * 65"),
                ("sources that are texts", "sources", "('x',)"),
                ("words of the server that are none", "server_words", "None"),
            ]
        ),
        *(
            pytest.param(f"Check('x', changes=lambda _: [replace(ONE, evidence={value})])", words, id=name)
            for name, value, words in [
                ("NUL as evidence", "{'a': '\\x00'}", "the character NUL"),
                ("no number as evidence", "{'a': float('nan')}", "ValueError"),
                ("half a character as evidence", "{'a': '\\ud800'}", "UnicodeEncodeError"),
                ("endless evidence", "{'a': 'x' * 70000}", "more than 65,536 bytes of evidence"),
            ]
        ),
    ],
)
def test_a_broken_check_is_an_unknown_finding_with_its_name_and_the_others_go_on(
    code: str, words: str, plugin_path: PluginPath
) -> None:
    add(plugin_path, code)
    add(plugin_path, "Check('y', changes=lambda _: [ONE])", package="fortunes", name="good")
    wanted(GIVEN.content, GIVEN.plan), mentioned(GIVEN), listings(GIVEN)
    found = report(GIVEN)
    (crash,) = crashes(found)
    assert crash.severity is Severity.UNKNOWN
    assert crash.message.startswith("The check tarot did not finish: the check tarot of the package cards 1 ")
    assert words in crash.message
    assert crash.message.endswith("What it looks for was not checked")
    assert (crash.evidence["check"], crash.evidence["package"]) == ("tarot", "cards 1")
    assert "Pl4nted" not in str(found)
    assert {"TAROT-01", "OBJ-01"} <= rules(found), "the good check, and ours"
    json.dumps(to_record(found), allow_nan=False).encode()


def test_what_a_check_changes_of_the_facts_reaches_nobody_else(plugin_path: PluginPath) -> None:
    add(plugin_path, f"None\n{SPOIL}")
    before = to_record(report(GIVEN, OURS))["plan"]
    wanted(GIVEN.content, GIVEN.plan)
    found = report(GIVEN)
    assert crashes(found) == []
    assert to_record(found)["plan"] == before
    assert GIVEN.content.manifests[0].body["data"] == {"metres": "7"}


def test_what_it_found_before_it_broke_is_kept(plugin_path: PluginPath) -> None:
    add(plugin_path, "Check('x', changes=drawing)")
    assert {"TAROT-01", "CRASHED"} <= rules(report(GIVEN))


def test_one_that_never_returns_is_unknown_in_every_look_and_asked_once(
    plugin_path: PluginPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_checks, "LOOK_SECONDS", 0.2)
    add(plugin_path, "Check('x', changes=lambda _: threading.Event().wait())")
    first, second = report(GIVEN), report(GIVEN)
    assert [crash.message for crash in crashes(first)] == [crash.message for crash in crashes(second)]
    assert "is disabled: it did not return within" in crashes(first)[0].message


def test_what_a_broken_check_claims_is_not_claimed(plugin_path: PluginPath) -> None:
    add(plugin_path, "Check('x', changes=drawing, claims=EVERYTHING)")
    given = facts(planned(an_object("example.com/v1", "Card", "moon", "shop"), Action.CREATE))
    assert "UNCLAIMED" in rules(report(given))
    assert "UNCLAIMED" not in rules(report(given, [Check("sound", claims=EVERYTHING)]))


def test_two_checks_of_one_name_are_unknown_and_both_named(plugin_path: PluginPath) -> None:
    add(plugin_path, "Check('x')")
    add(plugin_path, "Check('x')", package="fortunes")
    (crash,) = crashes(report(GIVEN))
    assert "cards 1, fortunes 1 bring a check of this name" in crash.message


def test_the_name_of_a_check_of_ours_cannot_be_taken(plugin_path: PluginPath) -> None:
    add(plugin_path, "Check('x')", name="preflight")
    assert "Pratique has a check of this name itself" in crashes(report(GIVEN))[0].message


def test_what_a_check_asks_for_is_asked_for(plugin_path: PluginPath) -> None:
    code = "Check('x', wants=lambda *_: [REF], mentions=lambda _: [REF], lists=lambda _: [Listing('', 'v1', 'Pod')])"
    add(plugin_path, code)
    ref = ObjectRef("", "v1", "ConfigMap", "shop", "tide-east")
    assert ref in wanted(GIVEN.content, GIVEN.plan)
    assert ref in mentioned(GIVEN)
    assert Listing("", "v1", "Pod") in listings(GIVEN)


def test_a_plugin_never_gets_a_secret(plugin_path: PluginPath) -> None:
    secret = "ObjectRef('', 'v1', 'Secret', 'shop', 'key')"
    add(plugin_path, f"Check('x', wants=lambda *_: [{secret}], lists=lambda _: [Listing('', 'v1', 'Secret')])")
    assert [one for one in wanted(GIVEN.content, GIVEN.plan) if one.kind == "Secret"] == []
    assert all(listing.metadata_only for listing in listings(GIVEN) if listing.kind == "Secret")


def test_the_limits_are_those_that_authors_are_told() -> None:
    assert (MAX_FINDINGS, MAX_ASKED) == (2000, 2000)
