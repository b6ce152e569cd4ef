"""Label selectors: what is read, refused, written as text and selected."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.catalogs.spec_source import NAME_LABEL, CatalogSource, selects_catalog
from provisioner.errors import BadSource
from provisioner.selectors import parse_terms, problem_of_selector, selector_words


def term(key: object, operator: str, *values: object) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        pytest.param({"matchLabels": {"": "value"}}, "matchLabels: '' is no key of a label", id="no key"),
        pytest.param({"matchLabels": {"name": "&value"}}, "matchLabels: '&value' is no value of a label", id="value"),
        pytest.param({"matchLabels": {"name": 3}}, "matchLabels: '3' is no value of a label", id="number"),
        pytest.param(term("name", "bad", "value"), "operator is 'bad'; expected one of In, NotIn", id="operator"),
        pytest.param(term("name", "In"), "values: In takes at least one", id="In without values"),
        pytest.param(term("name", "Exists", "a"), "values: Exists takes none", id="Exists with values"),
        pytest.param(term(None, "Exists"), "'None' is no key of a label", id="no key of a term"),
        pytest.param({"matchLabel": {}}, "has 'matchLabel'; it takes matchLabels and matchExpressions", id="unknown"),
        pytest.param([], "is list; expected matchLabels, matchExpressions or both", id="a list"),
        pytest.param(
            {"matchLabels": {f"k{n}": "" for n in range(51)}}, "a mapping of at most 50 labels", id="too many"
        ),
        pytest.param({"matchExpressions": ["x"]}, "matchExpressions[0]: expected key, operator", id="a text"),
    ],
)
def test_what_the_api_server_would_not_take_is_refused_with_its_place(selector: object, words: str) -> None:
    assert words in problem_of_selector(selector)
    shown = CatalogSource.to_form({"selector": selector})["catalog_selector"]
    again = {"catalog": "", "catalog_selector": shown}
    assert CatalogSource.problems_of_form(again), "a form that is saved as it is selects nothing else"
    with pytest.raises(BadSource, match="spec.sources\\[0\\].catalog.selector"):
        CatalogSource.parse_wish({"package": "harbour", "selector": selector}, "spec.sources[0].catalog")


@pytest.mark.parametrize(
    "text", ["tier=stable", "a/b in (c, d), !old, new, tier!=x", "team notin (a, b)", "a=", f"{NAME_LABEL}=port"]
)
def test_a_text_of_terms_is_a_selector_and_the_same_text_again(text: str) -> None:
    selector = parse_terms(text)
    assert problem_of_selector(selector) == ""
    assert selector_words(selector) == text


@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        pytest.param({}, True, id="an empty one selects every catalog"),
        pytest.param({"matchLabels": {"tier": "stable"}}, True, id="by a label"),
        pytest.param({"matchLabels": {"tier": "beta"}}, False, id="another value"),
        pytest.param({"matchLabels": {NAME_LABEL: "port"}}, True, id="by its name"),
        pytest.param({"matchLabels": {NAME_LABEL: "spoofed"}}, False, id="a label says another name"),
        pytest.param(term("tier", "NotIn", "stable"), False, id="not in"),
        pytest.param(term("absent", "DoesNotExist"), True, id="without"),
    ],
)
def test_a_catalog_is_selected_by_its_labels_and_its_own_name(selector: dict[str, Any], is_selected: bool) -> None:
    assert selects_catalog(selector, "port", {"tier": "stable", NAME_LABEL: "spoofed"}) is is_selected


def test_a_source_names_a_catalog_or_selects_but_not_both() -> None:
    with pytest.raises(BadSource, match="has both name and selector"):
        CatalogSource.parse_wish({"name": "port", "selector": {}, "package": "harbour"}, "spec.sources[0].catalog")


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        ({"catalog": "port", "catalog_selector": ""}, {}),
        ({"catalog": "", "catalog_selector": "every catalog"}, {}),
        ({"catalog": "", "catalog_selector": "tier=stable"}, {}),
        ({"catalog": "", "catalog_selector": " "}, {"catalog": "Name a Catalog or select by labels."}),
        (
            {"catalog": "port", "catalog_selector": "a"},
            {"catalog": "Name a Catalog or select by labels, but not both."},
        ),
        (
            {"catalog": "", "catalog_selector": "tier=="},
            {},
        ),
        (
            {"catalog": "", "catalog_selector": "tier in stable"},
            {
                "catalog_selector": "expected terms such as app=web, app!=web, app in (a, b), app, !app, or 'every catalog'"
            },
        ),
    ],
)
def test_a_form_names_a_catalog_or_selects(given: dict[str, str], problems: dict[str, str]) -> None:
    assert CatalogSource.problems_of_form(given) == problems


@pytest.mark.parametrize("words", ["every catalog", "tier=stable, !old"])
def test_what_a_form_selects_by_is_shown_in_it_again(words: str) -> None:
    given = {"catalog": "", "catalog_selector": words, "package": "harbour", "channel": "", "version": ""}
    assert CatalogSource.to_form(CatalogSource.to_spec(given))["catalog_selector"] == words
