"""What a chart makes up belongs to its deployment: it is found, kept, and put where a later rendering has another."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import pytest

from provisioner.errors import BadBundle, BundleTooLarge
from provisioner.render import Target, YamlLimits, YamlMeter
from provisioner.render.helm import made_up
from provisioner.render.helm.made_up import (
    Settled,
    TwoRenderings,
    check_copies,
    list_made_up,
    settle,
    settle_otherwise,
)
from provisioner.render.helm.tokens import Unaligned
from provisioner.render.objects import Found
from provisioner.values import Content, Hook, HookMoment, MadePlace, MadeSort, MadeUp
from tests.support.provisioner.charts import chart, coded, config_map, rendered, texts

pytestmark = pytest.mark.usefixtures("kept_engine")

FILE = "shop/templates/a.yaml"


def secret(name: str = "db", **data: str) -> dict[str, Any]:
    values = {key: coded(value) for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": values}


def pod(annotations: Mapping[str, str] = {}, /, **variables: Any) -> dict[str, Any]:
    env = [{"name": name, "value": value} for name, value in variables.items()]
    metadata = {"name": "web", "annotations": dict(annotations)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"env": env}]}}


def settled(
    first: list[Any],
    again: list[Any],
    kept: Mapping[str, str] = {},
    sources: Sequence[tuple[str, str]] = (),
    **more: Any,
) -> Settled:
    meter = more.pop("meter", YamlMeter(YamlLimits()))
    one, other = ([Found(body, FILE) for body in bodies] for bodies in (first, again))
    return settle(TwoRenderings(one, other, sources, "home"), kept, meter, **more)


def kept_of(made: Settled | MadeUp) -> dict[str, str]:
    return {each.place.key: each.value for each in made.values}


def bodies(made: Settled) -> list[Any]:
    return [found.body for found in made.objects]


PUBLIC_KEY = "-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----"
PASSWORDS = ("Xk2abcdef", "Zq9ghijkl", "Lm5mnopqr", "Vn7stuvwx")


def shop(password: str) -> list[Any]:
    url = f"postgres://u:{password}@db/shop"
    config = coded(f'{{"auth": "{coded(f"u:{password}")}"}}')
    return [secret(password=password, url=url, config=b64decode(config).decode()), pod(URL=url, OTHER="stays")]


def test_what_was_kept_is_put_wherever_a_value_went() -> None:
    first = settled(shop(PASSWORDS[0]), shop(PASSWORDS[1]))
    assert bodies(first) == shop(PASSWORDS[0])
    (made,) = first.values
    assert (made.place, made.sort, made.is_new) == (
        MadePlace("Secret", "home", "db", "/data/password"),
        MadeSort.PASSWORD,
        True,
    )
    assert [(copy.kind, copy.path) for copy in made.copies] == [
        ("Pod", "/spec/containers/0/env/[name=URL]/value"),
        ("Secret", "/data/config"),
        ("Secret", "/data/url"),
    ]
    later = settled(shop(PASSWORDS[2]), shop(PASSWORDS[3]), kept_of(first))
    assert (bodies(later), later.values[0].is_new) == (shop(PASSWORDS[0]), False)
    assert PASSWORDS[0] not in repr(first.values)


def test_a_later_version_changes_all_else_and_finds_its_value_by_any_place() -> None:
    kept = kept_of(settled(shop(PASSWORDS[0]), shop(PASSWORDS[1])))
    sides = [
        [secret("aaa", new=password), secret(password=password), pod(NEW="x", URL=f"mysql://u:{password}@other")]
        for password in PASSWORDS
    ]
    later = settled(sides[2], sides[3], kept)
    assert bodies(later) == sides[0]
    assert (later.values[0].place.name, later.values[0].is_new) == ("db", False)


def test_a_value_stays_with_the_name_of_its_entry_when_another_one_comes_before_it() -> None:
    first = settled([pod(PASSWORD=PASSWORDS[0])], [pod(PASSWORD=PASSWORDS[1])])
    assert first.values[0].place.path == "/spec/containers/0/env/[name=PASSWORD]/value"
    later = settled(
        [pod(ADDED=PASSWORDS[1], PASSWORD=PASSWORDS[2])],
        [pod(ADDED=PASSWORDS[2], PASSWORD=PASSWORDS[3])],
        kept_of(first),
    )
    assert bodies(later) == [pod(ADDED=PASSWORDS[1], PASSWORD=PASSWORDS[0])]
    # What has no name of its own stays with its number, as MADE-05 says.
    (made,) = settled([{"list": [{"a": PASSWORDS[0]}]}], [{"list": [{"a": PASSWORDS[1]}]}]).values
    assert made.place.path.endswith("/list/0/a")


@pytest.mark.parametrize(
    ("first", "again", "sort"),
    [
        ("2026-11-30T13:09:42Z", "2026-11-30T13:09:43Z", MadeSort.TIME),
        ("1796044182", "1796044183", MadeSort.TIME),
        ("20261130130942", "20261130130943", MadeSort.TIME),
        ("1796044182", "8231447105", MadeSort.PASSWORD),
        (PUBLIC_KEY % "AA", PUBLIC_KEY % "BB", MadeSort.PUBLIC_KEY),
    ],
    ids=["time", "seconds", "digits", "random digits", "public key"],
)  # fmt: skip
def test_a_value_is_called_what_it_is(first: str, again: str, sort: MadeSort) -> None:
    (made,) = settled([secret(a=first)], [secret(a=again)]).values
    assert made.sort is sort


def test_what_a_hook_has_is_kept_by_where_it_stays() -> None:
    hook = Hook.at([HookMoment.BEFORE], weight=0, is_cleared=False)
    sides = [[Found(secret(a=word), FILE, hook=hook), Found(pod(URL=f"x://u:{word}@db"), FILE)] for word in PASSWORDS]
    meter = YamlMeter(YamlLimits())
    first = settle(TwoRenderings(sides[0], sides[1], [], "home"), {}, meter)
    later = settle(TwoRenderings(sides[2][1:], sides[3][1:], [], "home"), kept_of(first), meter)
    assert bodies(later) == [sides[0][1].body]


def test_short_values_are_not_taken_for_each_other() -> None:
    sides = [
        [secret(a=a, b=b), pod(TEXT=f"{a} stays {b}")] for a, b in (("1", "1"), ("2", "2"), ("3", "4"), ("5", "6"))
    ]
    first = settled(sides[0], sides[1])
    assert len(first.values) == 4
    assert bodies(settled(sides[2], sides[3], kept_of(first))) == sides[0]
    # Where a value is `a` or `true`, nothing but its own place is touched.
    sides = [[secret(a=value), pod(OTHER="a")] for value in ("a", "true", "xyz1", "xyz2")]
    assert bodies(settled(sides[2], sides[3], kept_of(settled(sides[0], sides[1])))) == sides[0]


def test_names_numbers_and_bytes_are_made_up_too() -> None:
    def made(name: str, port: int, raw: bytes) -> list[Any]:
        data = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name},
            "data": {"raw": b64encode(raw).decode()},
        }
        return [
            data,
            {"apiVersion": "x.io/v1", "kind": "A", "metadata": {"name": "a"}, "spec": {"port": port, "ref": name}},
        ]

    sides = [
        made(f"db-{word}", port, raw)
        for word, port, raw in (
            ("abcde", 30001, b"\xff\x00"),
            ("fghij", 30002, b"\xfe\x01"),
            ("klmno", 30003, b"\xfd\x02"),
            ("pqrst", 30004, b"\xfc"),
        )
    ]
    first = settled(sides[0], sides[1])
    places = {each.place.path: each.sort for each in first.values}
    assert places == {
        "templates/a.yaml#0/metadata/name": MadeSort.NAME,
        "templates/a.yaml#0/data/raw": MadeSort.PASSWORD,
        "/spec/port": MadeSort.TEXT,
    }
    assert bodies(settled(sides[2], sides[3], kept_of(first))) == sides[0]
    offline = settled(sides[0], sides[1], is_offline=True)
    assert bodies(offline) == bodies(settled(sides[2], sides[3], is_offline=True))
    assert bodies(offline)[1]["spec"]["port"] == 1
    with pytest.raises(Unaligned):
        settled(sides[0], sides[1], dict.fromkeys(kept_of(first), "no number"))


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ([pod()], [pod(), pod()]),
        ([pod()], [secret()]),
        ([pod(A="x")], [pod(A="x", B="y")]),
        ([secret(a="x")], [secret(b="x")]),
        ([pod(A=None)], [pod(A="x")]),
        ([pod(A=True)], [pod(A=False)]),
        ([pod(A="1")], [pod(A=1)]),
        ([pod(A="x"), pod(A="y")], [pod(A="u"), pod(A="v")]),
    ],
    ids=["objects", "kinds", "lists", "keys", "nothing", "switches", "types", "two of one name"],
)
def test_another_shape_is_no_value(first: list[Any], again: list[Any]) -> None:
    if first[0]["kind"] != again[0]["kind"]:
        first[0]["spec"] = {}
    with pytest.raises(Unaligned):
        settled(first, again)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_checksum_over_a_known_text_is_computed_again_also_over_another_checksum() -> None:
    def made(password: str) -> tuple[list[Any], tuple[str, str]]:
        text = f"\nkind: Secret\ndata: {coded(password)}\n"
        inner = f"checksum: {sha(text)}"
        notes = {"checksum/secret": sha(text), "checksum/pw": sha(password)[:10], "checksum/outer": sha(inner)}
        return [secret(password=password), pod(notes)], (text, inner)

    (first, texts), (again, texts_again) = made(PASSWORDS[0]), made(PASSWORDS[1])
    kept = kept_of(settled(made(PASSWORDS[2])[0], made(PASSWORDS[3])[0]))
    found = settled(first, again, kept, list(zip(texts, texts_again, strict=True)))
    assert bodies(found) == made(PASSWORDS[2])[0]
    assert [checksum.is_known for checksum in found.checksums] == [True] * 3


def test_a_checksum_over_what_nobody_knows_hides_no_change() -> None:
    def made(password: str, text: str = "one") -> list[Any]:
        notes = {"checksum/secret": sha(f"other {password}"), "rolls": sha(password[::-1])[:8]}
        return [
            {**secret(password=password), "text": text},
            pod(notes, CONFIG_HASH=sha(password * 2), TOKEN=sha(password * 3)),
        ]

    first, again = made(PASSWORDS[0]), made(PASSWORDS[1])
    kept = kept_of(settled(first, again))
    found, same = settled(first, again, kept), settled(made(PASSWORDS[2]), made(PASSWORDS[3]), kept)
    assert bodies(found) == bodies(same)
    assert [(checksum.place.path.rpartition("/")[2], checksum.is_known) for checksum in found.checksums] == [
        ("checksum~1secret", False),
        ("rolls", False),
        ("value", False),
    ]
    assert len(bodies(found)[1]["metadata"]["annotations"]["rolls"]) == 8
    # A variable that is called like no checksum is a value, though it looks like one: it stays.
    other = settled(made(PASSWORDS[2], "two"), made(PASSWORDS[3], "two"), kept)
    notes, changed = (bodies(each)[1]["metadata"]["annotations"] for each in (found, other))
    assert all(notes[key] != changed[key] for key in notes)
    variables, others = (bodies(each)[1]["spec"]["containers"][0]["env"] for each in (found, other))
    assert [one == two for one, two in zip(variables, others, strict=True)] == [False, True]


def test_what_was_looked_up_keeps_its_place_among_the_values_of_a_text() -> None:
    def made(first: str, second: str) -> list[Any]:
        return [secret(a=first), pod(TEXT=f"{first} {second}")]

    before = settled(made(*PASSWORDS[:2]), made(*PASSWORDS[2:]))
    after = settled(made(PASSWORDS[0], "Aa1bbbbbb"), made(PASSWORDS[0], "Cc2dddddd"), before.kept, earlier=before)
    assert bodies(after) == bodies(before)
    listed = list_made_up(after.objects, "home", [before, after])
    assert [(each.place.path, len(each.copies)) for each in listed.values] == [
        ("/spec/containers/0/env/[name=TEXT]/value", 0),
        ("/data/a", 1),
    ]
    short = settled(made("ab", PASSWORDS[1]), made("cd", PASSWORDS[3]))
    with pytest.raises(Unaligned):
        settled(made("ab", PASSWORDS[2]), made("ab", PASSWORDS[3]), short.kept, earlier=short)


@pytest.mark.parametrize(("before", "now"), [(2, 3), (3, 2)], ids=["more now", "fewer now"])
def test_a_value_is_not_told_by_its_number_in_a_text_that_has_another_number_of_them(before: int, now: int) -> None:
    def made(count: int, letters: str) -> list[Any]:
        words = [f"{letters}{at}abcde" for at in range(count)]
        return [secret(**{f"key{at}": word for at, word in enumerate(words)}), pod(TEXT=" ".join(words))]

    kept = kept_of(settled(made(before, "Lm5")[1:], made(before, "Vn7")[1:]))
    first, again = made(now, "Xk2"), made(now, "Zq9")
    with pytest.raises(BadBundle, match="another number of values in"):
        settled(first[1:], again[1:], kept)
    known = kept_of(settled(first[:1], again[:1]))
    assert bodies(settled(first, again, {**kept, **known})) == first


def test_short_values_and_those_that_are_encoded_twice_are_found_again() -> None:
    sides = [
        [secret(short=short, twice=coded(long)), pod(COPY=coded(f"x: {coded(long)}"))]
        for short, long in (("abcde", PASSWORDS[0]), ("fghij", PASSWORDS[1]))
    ]
    made = settled(sides[0], sides[1])
    listed = list_made_up(made.objects, "home", [made])
    assert [(each.place.path, each.value, len(each.copies)) for each in listed.values] == [
        ("/data/short", "abcde", 0),
        ("/data/twice", PASSWORDS[0], 1),
    ]


def test_S26_what_a_chart_makes_up_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def many(letter: str, count: int) -> list[Any]:
        return [pod(**{f"V{at}": f"{letter}{at:09}" for at in range(count)})]

    with pytest.raises(BundleTooLarge, match="more than 500 values"):
        settled(many("a", 501), many("b", 501))
    with pytest.raises(BundleTooLarge, match="more than 4 MiB"):
        settled([pod(A="a" * 5 * 2**20)], [pod(A="b" * 5 * 2**20)])
    made = settled(shop(PASSWORDS[0]), shop(PASSWORDS[1]))
    monkeypatch.setattr(made_up, "MAX_SEARCHED", 10)
    with pytest.raises(BundleTooLarge, match="makes up 1 value, too many for"):
        list_made_up(made.objects, "home", [made])
    with pytest.raises(BundleTooLarge, match="max_characters"):
        settled(many("a", 100), many("b", 100), meter=YamlMeter(YamlLimits(max_characters=999)))


SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\ndata:\n"
ANNOTATED = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  annotations:\n"
CHECKSUM = '    checksum/secret: {{ include (print $.Template.BasePath "/a.yaml") . | sha256sum }}\n'
# A password that the chart finds again in its Secret, one that it does not, a hash of it, a name, and certificates.
MAKES_ALL = chart(
    templates__a='{{- $found := (lookup "v1" "Secret" .Release.Namespace "db").data | default dict }}\n'
    f"{SECRET}  found: {{{{ $found.found | default (randAlphaNum 16 | b64enc) }}}}\n"
    '  hash: {{ get $found "found" | default "eA==" | b64dec | sha256sum | b64enc }}\n',
    templates__b=f"{{{{- $made := randAlphaNum 16 }}}}\n{SECRET.replace('db', 'more')}  made: {{{{ $made | b64enc }}}}\n"
    '  login: {{ htpasswd "admin" $made | b64enc }}\n  url: {{ printf "https://u:%s@db" $made | b64enc }}\n'
    '---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: "run-{{ uuidv4 }}"}\n',
    templates__c=f'{{{{- $ca := genCA "ca" 30 }}}}\n{{{{- $tls := genSignedCert "db" nil nil 30 $ca }}}}\n'
    f"{SECRET.replace('db', 'tls')}  tls.crt: {{{{ $tls.Cert | b64enc }}}}\n  tls.key: {{{{ $tls.Key | b64enc }}}}\n"
    "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: db}\n"
    "webhooks: [{name: a.b.c, clientConfig: {caBundle: {{ $ca.Cert | b64enc }}}}]\n",
    templates__d='{{ with lookup "x.io/v1" "Thing" "" "a" }}{{ fail "found" }}{{ end }}\n'
    '{{ range (lookup "v1" "Pod" "home" "").items }}{{ fail "listed" }}{{ end }}\n'
    f"{ANNOTATED}{CHECKSUM}    rolls: {{{{ randAlphaNum 5 | quote }}}}\n",
)


def text_of(content: Content, name: str, key: str) -> str:
    (body,) = (one.body for one in content.manifests if (one.ref.kind, one.ref.name) == ("Secret", name))
    return b64decode(body["data"][key]).decode()


def test_a_chart_keeps_what_it_made_and_finds_it() -> None:
    first = rendered(MAKES_ALL, kept={})
    later = rendered(MAKES_ALL, kept=kept_of(first.made_up))
    assert first.digest == later.digest
    assert {(made.place.name, made.place.path, made.sort.value) for made in first.made_up.values} == {
        ("db", "/data/found", "password"),
        ("more", "/data/made", "password"),
        ("more", "/data/login", "hash"),
        ("", "templates/b.yaml#1/metadata/name", "name"),
        ("tls", "/data/tls.crt", "certificate"),
        ("tls", "/data/tls.key", "private key"),
        ("db", "/webhooks/[name=a.b.c]/clientConfig/caBundle", "CA certificate"),
        ("web", "/metadata/annotations/rolls", "text"),
    }
    assert {made.is_new for made in first.made_up.values} == {True}
    assert {made.is_new for made in later.made_up.values} == {False}
    # Helm computed the checksum and the hash over what the Secret holds.
    assert [checksum.is_known for checksum in first.made_up.checksums] == [True]
    assert text_of(first, "db", "hash") == sha(text_of(first, "db", "found"))
    assert text_of(first, "more", "url") == f"https://u:{text_of(first, 'more', 'made')}@db"
    assert not any(made.value in repr(first.made_up) for made in first.made_up.values)


@pytest.mark.thorough
def test_without_a_deployment_nothing_is_shown_and_two_runs_are_alike() -> None:
    first, again = rendered(MAKES_ALL), rendered(MAKES_ALL)
    assert first.digest == again.digest
    assert first.made_up == again.made_up
    assert text_of(first, "db", "found").startswith("made-up-")
    assert text_of(first, "tls", "tls.key").strip().startswith("made-up-")
    assert {made.value[:8] for made in first.made_up.values} == {"made-up-"}


@pytest.mark.parametrize(
    "template",
    [
        # It makes its Secret only where there is none: Helm's next upgrade would delete it.
        '{{ if not (lookup "v1" "Secret" "home" "db") }}\n%s{{ end }}',
        '{{ if lookup "v1" "Secret" "home" "db" }}{{ fail (lookup "v1" "Secret" "home" "db" | toJson) }}{{ end }}\n%s',
    ],
    ids=["makes it once", "fails with its values"],
)
def test_what_a_chart_does_with_its_own_secret_changes_neither_objects_nor_words(template: str) -> None:
    files = chart(templates__a=template % f"{SECRET}  a: {{{{ randAlphaNum 16 | b64enc }}}}\n")
    found = rendered(files, kept={})
    assert text_of(found, "db", "a") == found.made_up.values[0].value


@pytest.mark.parametrize(
    ("shown", "is_taken"),
    [
        ("_".join, False),
        (lambda word: word.encode().hex(), False),
        (lambda word: word[:7], False),
        (lambda word: coded(word[::-1]), False),
        (lambda word: "x" * (word == PASSWORDS[0]), False),
        (sha, True),
        (coded, True),
        (lambda word: f"https://u:{word}@db", True),
        (lambda word: coded(f"password: {word}"), True),
    ],
    ids=["letters", "hex", "part", "reversed", "compared", "checksum", "base64", "in a URL", "in base64"],
)
def test_S44_what_a_chart_looked_up_it_shows_as_it_is_or_not_at_all(
    shown: Callable[[str], str], is_taken: bool
) -> None:
    renderings = TwoRenderings(*([Found(secret(a=word), FILE)] for word in PASSWORDS[:2]), [], "home")
    meter = YamlMeter(YamlLimits())
    told = settle(renderings, {}, meter)
    told_again = settle_otherwise(renderings, told, meter)
    assert told_again.kept == dict.fromkeys(told.kept, PASSWORDS[1])
    sides = ([*each.objects, Found(pod(SOME_HASH=shown(each.values[0].value)), FILE)] for each in (told, told_again))
    with nullcontext() if is_taken else pytest.raises(Unaligned):
        check_copies(TwoRenderings(*sides, [], "home"), told, told_again, told)


def test_S44_a_chart_that_shows_letters_of_what_it_looked_up_is_taken_as_if_it_had_found_nothing() -> None:
    found = '{{- $found := (lookup "v1" "Secret" "home" "db").data | default dict }}\n'
    files = chart(
        templates__a=f'{found}{SECRET}  a: {{{{ get $found "a" | default (randAlphaNum 9 | b64enc) }}}}\n',
        templates__b=found + config_map('get $found "a" | b64dec | splitList "" | join "_"'),
    )
    made = rendered(files, kept={MadePlace("Secret", "home", "db", "/data/a").key: PASSWORDS[0]})
    assert (texts(made)["made"], text_of(made, "db", "a")) == ("", PASSWORDS[0])


def test_an_upgrade_that_wants_its_passwords_finds_those_that_were_kept_and_no_new_ones() -> None:
    value = (
        '{{ $found := (lookup "v1" "Secret" "home" "db").data | default dict }}'
        "{{ if hasKey $found %r }}{{ get $found %r }}{{ else if .Release.IsUpgrade }}{{ fail `give it` }}"
        "{{ else }}{{ randAlphaNum 9 | b64enc }}{{ end }}"
    ).replace("%r", "`{}`")
    target = Target("v1.36.3", ("v1", "v1/Secret"), is_upgrade=True)
    files = chart(templates__a=f"{SECRET}  a: {value.replace('{}', 'a')}\n")
    kept = {MadePlace("Secret", "home", "db", "/data/a").key: PASSWORDS[0]}
    found = rendered(files, kept=kept, target=target)
    assert (text_of(found, "db", "a"), found.made_up.values[0].is_new) == (PASSWORDS[0], False)
    more = chart(templates__a=f"{SECRET}  a: {value.replace('{}', 'a')}\n  b: {value.replace('{}', 'b')}\n")
    for other, known in ((files, {}), (more, kept)):
        with pytest.raises(BadBundle, match="templates/a.yaml:5: Helm cannot render it") as refused:
            rendered(other, kept=known, target=target)
        assert PASSWORDS[0] not in refused.value.in_full
    rotated = rendered(files, kept=dict.fromkeys(kept, ""), target=target)
    assert rotated.made_up.values[0].is_rotated
    assert text_of(rotated, "db", "a") == rotated.made_up.values[0].value != ""


def test_a_value_is_also_where_patches_put_its_object_under_the_key_that_it_had() -> None:
    files = chart(templates__a=f"{SECRET}  a: {{{{ randAlphaNum 16 | b64enc }}}}\n")
    moved = rendered(files, {"namePrefix": "shop-", "namespace": "away"}, kept={})
    (made,) = moved.made_up.values
    assert made.place == MadePlace("Secret", "home", "db", "/data/a")
    assert made.copies == (MadePlace("Secret", "away", "shop-db", "/data/a"),)
    assert text_of(rendered(files, kept=kept_of(moved.made_up)), "db", "a") == made.value


def test_a_password_and_the_address_with_it_are_one_value_whichever_of_them_comes_first() -> None:
    made, address = "{{ $made := randAlphaNum 16 }}\n", "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: url}\n"
    address += "data: {text: 'db://{{ $made }}@x'}\n"
    password = f"---\n{SECRET}  a: {{{{ $made | b64enc }}}}\n"
    whole = chart(templates__a=made + password + address)
    for before in (password, address):
        first = rendered(chart(templates__a=made + before), kept={})
        (value,) = first.made_up.values
        later = rendered(whole, kept=kept_of(first.made_up))
        assert (texts(later)["url"], text_of(later, "db", "a")) == (f"db://{value.value}@x", value.value)


def test_a_text_with_another_number_of_values_than_before_gets_none_of_anothers() -> None:
    def side(salt: str, *names: str, alone: str = "") -> list[Any]:
        text = "\n".join(f"{name}={sha(salt + name)[:16]}" for name in names)
        return [secret(conf=f"# {names}\n{text}", **{alone: sha(salt + alone)[:16]} if alone else {})]

    first = settled(side("a", "admin", "web"), side("b", "admin", "web"))
    for names in (("web",), ("more", "admin", "web")):
        with pytest.raises(BadBundle, match="another number of values in /data/conf of Secret db than before"):
            settled(side("c", *names), side("d", *names), kept_of(first))
    # Where one is also alone, it is known by that.
    first = settled(side("a", "admin", "web", alone="web"), side("b", "admin", "web", alone="web"))
    later = settled(side("c", "web", alone="web"), side("d", "web", alone="web"), kept_of(first))
    assert {made.value for made in later.values} == {sha("aweb")[:16]}


def test_what_is_to_be_made_anew_is_and_with_it_every_key_and_certificate_of_its_template() -> None:
    """A certificate of a Secret fits only the authority that a webhook was told, which stands in no Secret."""

    def pem(label: str, word: str) -> str:
        return f"-----BEGIN {label}-----\n{coded(word * 4)}\n-----END {label}-----\n"

    sides = [
        [
            secret(**{"tls.crt": pem("CERTIFICATE", word), "tls.key": pem("PRIVATE KEY", word[::-1])}),
            secret("login", password=f"own{word}"),
            {"kind": "Hook", "metadata": {"name": "x"}, "caBundle": coded(pem("CERTIFICATE", f"ca{word}"))},
        ]
        for word in PASSWORDS
    ]
    first = settled(sides[0], sides[1])
    kept = kept_of(first)
    named = next(made.place for made in first.values if made.place.path == "/data/tls.key")
    later = settled(sides[2], sides[3], {**kept, named.key: ""})
    assert bodies(later) == [sides[2][0], sides[0][1], sides[2][2]]
    assert {made.place.name: (made.is_rotated, made.is_new) for made in later.values} == {
        "db": (True, False),
        "login": (False, False),
        "x": (True, False),
    }
    password = next(made.place for made in first.values if made.place.name == "login")
    other = settled(sides[2], sides[3], {**kept, password.key: ""})
    assert bodies(other) == [sides[0][0], sides[2][1], sides[0][2]], "certificates stay where none is made anew"
