"""The form of a BundleDeployment: one source, who installs it, and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms, template
from django.conf import settings
from django.core.validators import RegexValidator

from approvals.bundle_spec import DEFAULT_FORMAT, INTERVAL_FORM, KINDS, SpecSource, UpgradePolicy, parse_spec
from approvals.ledger.change_words import REASON_LENGTH, TICKET_FORM, TICKET_LENGTH, ChangeWords
from approvals.models import Cluster
from approvals.web.fields import LabelsField, YamlField, mono
from provisioner.catalogs.spec_source import CatalogSource
from provisioner.masking import masked_states
from provisioner.render import write
from provisioner.source import RemoteSource, parse_reference, reference_words

# Filters of the templates of these pages.
register = template.Library()

SHORT_LINES = 12
# What follows where a catalog offers something newer, the default first.
UPGRADE_WORDS = {
    UpgradePolicy.REQUEST: "a newer version makes a request that people decide on",
    UpgradePolicy.MANUAL: "a newer version is only shown, and taken when somebody asks for it",
    UpgradePolicy.AUTOMATIC: "a newer version makes a request that grants may approve, too",
}
OWN_LINES = frozenset(
    {
        "paused",
        "format",
        "config",
        "sources",
        "installNamespace",
        "serviceAccountName",
        "healthChecks",
        "progressDeadlineMinutes",
        "onFailure",
        "drift",
        "collisionProtection",
        "constraints",
        "upgradePolicy",
    }
)


DRIFT_WORDS = {"going": "is being deleted", "gone": "is gone", "remade": "was recreated by someone else"}
ASKS = {"condition": "condition", "fieldValue": "field", "cel": "CEL"}
KIND_WORDS = [(kind, source_type.label) for kind, source_type in KINDS.items()]
SOURCE_FIELDS = [field for source_type in KINDS.values() for field in source_type.fields]
DRIFTS = [("Correct", "revert to what was approved"), ("Report", "only report the difference")]
FAILURES = [("Stop", "stop and keep what was applied"), ("RestorePrevious", "restore the running revision")]
COLLISIONS = [
    ("Prevent", "do not touch it; the request cannot be applied"),
    ("IfNoController", "adopt it unless it has a controller"),
]
DELETIONS = [("", "delete its objects, in reverse order"), ("Orphan", "keep its objects in the cluster")]
UPGRADES = [(str(policy), f"{policy}: {words}") for policy, words in UPGRADE_WORDS.items()]
CHOSEN = {"drift": "drift", "on_failure": "onFailure", "collisions": "collisionProtection"}
# What is left out of the spec where the field is empty.
LEFT_OUT = {
    "deletion": "deletionPolicy",
    "deadline": "progressDeadlineMinutes",
    "health_checks": "healthChecks",
    "constraints": "constraints",
    "config": "config",
}
FURTHER = (*CHOSEN, *(name for name in LEFT_OUT if name != "config"), "rest")
WORDS = ("change_reason", "change_ticket")
# What the form asks for by itself, and what has a door of its own.
UPGRADE_POLICY = "upgradePolicy"
OWN_FIELDS = {"installNamespace", "serviceAccountName", "sources", "paused", UPGRADE_POLICY}
ASKED = OWN_FIELDS | {*CHOSEN.values(), *LEFT_OUT.values()}
REMOTE = [kind for kind, source_type in KINDS.items() if issubclass(source_type, RemoteSource)]


@dataclass(frozen=True, slots=True)
class FoldedYaml:
    """A part of a spec as YAML, which stands folded where it is long. Values that look like credentials are hidden."""

    title: str
    text: str

    @property
    def is_short(self) -> bool:
        return self.text.count("\n") <= SHORT_LINES


def folded_yaml(spec: Mapping[str, Any]) -> list[FoldedYaml]:
    """The config of the format, and the fields that few specs have."""
    parts = {
        "Config": spec.get("config"),
        "Other fields": {key: value for key, value in sorted(spec.items()) if key not in OWN_LINES},
    }
    return [FoldedYaml(title, write(_masked(part))) for title, part in parts.items() if part]


def _masked(part: Any) -> Any:
    shown, _ = masked_states(part, part)
    return shown


@register.filter
def upgrade_words(spec: Mapping[str, Any]) -> tuple[str, str] | None:
    """The `upgradePolicy` that counts and what it means; None for a spec that names no catalog."""
    parsed = parse_spec(spec)
    return (parsed.upgrade_policy, UPGRADE_WORDS[parsed.upgrade_policy]) if parsed.catalogs() else None


@register.filter
def drift_words(kind: str) -> str:
    """What happened to an object, for people."""
    return DRIFT_WORDS.get(kind, "was changed" if kind == "changed" else "got fields from other managers")


@register.filter
def check_words(entry: object) -> str:
    """What one entry of `spec.healthChecks` asks, whatever its shape."""
    if not isinstance(entry, Mapping):
        return str(entry)
    place = "/".join(str(entry[key]) for key in ("namespace", "name") if entry.get(key))
    asked = next((name for name in ASKS if isinstance(entry.get(name), Mapping)), "")
    what = ", ".join(f"{key}: {value}" for key, value in entry[asked].items()) if asked else "nothing"
    return f"{entry.get('kind')} {place}".strip() + f": {ASKS.get(asked, 'asks for')} {what}"


def _text_field(
    label: str, help_text: str = "", *, required: bool = False, offered: str = "", **more: Any
) -> forms.CharField:
    """A line of text; `offered` is the id of the names to pick from."""
    widget = forms.TextInput(attrs=mono(**({"list": offered} if offered else {})))
    return forms.CharField(label=label, help_text=help_text, required=required, max_length=2000, widget=widget, **more)


def _needed(kind: str) -> list[str]:
    """The fields without which a source of this kind fails; a checksum is one unless the operator allows none."""
    is_allowed = settings.PRATIQUE["MUTABLE_HTTP"]
    fields = KINDS[kind].fields if kind in KINDS else ()
    return [field.name for field in fields if field.is_needed and not (is_allowed and field.is_checksum)]


@dataclass(frozen=True, slots=True)
class Group:
    """The fields that are for sources of these kinds; each with whether such a source needs it."""

    kinds: list[str]
    words: str
    fields: list[tuple[forms.BoundField, bool]]


class SpecForm(forms.Form):
    """The parts of a spec that people change. What it does not show stays as it is."""

    install_namespace = _text_field(
        "Install namespace", "The namespace must exist.", required=True, offered="namespaces"
    )
    service_account = _text_field(
        "ServiceAccount", "All objects are applied as this ServiceAccount.", required=True, offered="accounts"
    )
    kind = forms.ChoiceField(label="Source", choices=KIND_WORDS)
    upgrade_policy = forms.ChoiceField(
        label="Upgrades",
        choices=UPGRADES,
        required=False,
        initial=UpgradePolicy.REQUEST,
        help_text="The upgradePolicy. Grants are policies that can approve a request instead of people.",
    )
    secret = _text_field(
        "Secret", "namespace/name, or a name in the install namespace. You need permission to get this Secret."
    )
    secret_host = _text_field(
        "Host that gets the Secret",
        "The catalog says where a package is, so name the host, such as registry.example.com. Not needed for a docker "
        "configuration, which names its hosts.",
    )
    interval = _text_field(
        "Check for changes",
        "How often a branch, tag or URL without a checksum is checked, such as 10m or 1h30m; Never turns it off. If "
        "empty, the operator's default applies.",
        validators=[RegexValidator(INTERVAL_FORM, "Enter a time such as 10m or 1h30m, or Never.")],
    )
    drift = forms.ChoiceField(label="If others change an object", choices=DRIFTS, required=False)
    on_failure = forms.ChoiceField(label="If applying fails", choices=FAILURES, required=False)
    collisions = forms.ChoiceField(label="If an object already exists", choices=COLLISIONS, required=False)
    deletion = forms.ChoiceField(label="If the deployment is deleted", choices=DELETIONS, required=False)
    deadline = forms.IntegerField(
        label="Progress deadline",
        help_text=(
            "Minutes within which a revision must become healthy. If empty, PRATIQUE_PROGRESS_DEADLINE_MINUTES applies."
        ),
        required=False,
        min_value=1,
        max_value=1440,
    )
    health_checks = YamlField(
        label="Health checks",
        help_text="A YAML list. Each entry selects objects and has one of condition, fieldValue or cel.",
        example='[{apiVersion: example.com/v1, kind: Buoy, condition: {type: Ready, status: "True"}}]',
        is_list=True,
    )
    constraints = YamlField(
        label="Constraints",
        help_text=(
            "YAML: kubernetesVersionRange, requiredAPIs, requiredBundleDeployments, cel. Requests wait "
            "until the cluster meets them."
        ),
        example='{kubernetesVersionRange: ">=1.34.0 <1.37.0"}',
    )
    config = YamlField(
        label="Config",
        help_text="YAML: what the format takes. Values of a chart stand below values.",
        example="{values: {replicaCount: 2}}",
        rows=8,
    )
    rest = YamlField(
        label="Other spec fields",
        help_text="YAML: format, optionalKinds, revisionHistoryLimit and other fields of the CRD.",
        example="{format: plain, revisionHistoryLimit: 10}",
    )
    change_reason = forms.CharField(
        label="Reason for the change",
        help_text="Shown to reviewers, in chat and in the audit, with this change only.",
        required=False,
        max_length=REASON_LENGTH,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    change_ticket = forms.CharField(
        label="Change ticket",
        required=False,
        max_length=TICKET_LENGTH,
        widget=forms.TextInput(attrs=mono()),
        validators=[RegexValidator(rf"\A{TICKET_FORM}\Z", "A ticket contains no @.")],
    )
    generation = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        for field in SOURCE_FIELDS:
            choices = [(choice, choice) for choice in field.choices]
            self.fields[field.name] = (
                forms.ChoiceField(label=field.label, choices=choices, required=False)
                if choices
                else _text_field(field.label, field.help_text)
            )
        names = (field.name for field in SOURCE_FIELDS)
        self.order_fields([*(self.field_order or ()), "install_namespace", "service_account", "kind", *names])
        kind = self.initial.get("kind", "image")
        if kind not in KINDS:
            choices = [(kind, f"{kind} (a plug-in's; it stays as it is)"), *KIND_WORDS]
            self.fields["kind"].choices = choices  # type: ignore[attr-defined] # the stubs know a Field here only

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for name in _needed(cleaned.get("kind", "")):
            if not cleaned.get(name):
                self.add_error(name, "This field is required for this kind of source.")
        if cleaned.get("kind") == CatalogSource.kind:
            for name, words in CatalogSource.problems_of_form(cleaned).items():
                self.add_error(name, words)
        for name in ("secret", *(field.name for field in SOURCE_FIELDS if field.is_reference)):
            if (cleaned.get(name) or "").count("/") > 1:
                self.add_error(name, f"{cleaned[name]} is not NAMESPACE/NAME: there is more than one slash.")
        for key in sorted(ASKED & (cleaned.get("rest") or {}).keys()):
            words = (
                "cannot be set here: pause and resume on the deployment page"
                if key == "paused"
                else "has its own field in this form"
            )
            self.add_error("rest", f"{key} {words}.")
        if cleaned.get("secret") and cleaned.get("kind") == "configMap":
            self.add_error("secret", "A ConfigMap needs no Secret.")
        if cleaned.get("kind") == "catalog" and cleaned.get("secret_host") and not cleaned.get("secret"):
            self.add_error("secret_host", "There is no Secret that this host could get.")
        return cleaned

    def format(self) -> str:
        """The format that is written in it, as far as it can be read."""
        rest = self["rest"].value()
        if not isinstance(rest, Mapping):
            try:
                rest = self.fields["rest"].clean(rest or "")
            except forms.ValidationError:
                rest = {}
        return str(rest.get("format") or DEFAULT_FORMAT)

    def first(self) -> list[forms.BoundField]:
        beside = {"secret", "secret_host", "interval", "upgrade_policy"}
        later = {*FURTHER, *WORDS, "config", *beside, *(field.name for field in SOURCE_FIELDS)}
        return [field for field in self if field.name not in later]

    def groups(self) -> list[Group]:
        """What a source is asked for, by its kind."""
        groups = [
            Group([kind], found.label, [(self[field.name], field.name in _needed(kind)) for field in found.fields])
            for kind, found in KINDS.items()
        ]
        return [
            *groups,
            Group(["catalog"], "Newer versions of the package", [(self["upgrade_policy"], False)]),
            Group([*REMOTE, "catalog"], "Private source", [(self["secret"], False)]),
            Group(["catalog"], "Private package", [(self["secret_host"], False)]),
            Group(REMOTE, "Changes of the source", [(self["interval"], False)]),
        ]

    def further(self) -> list[forms.BoundField]:
        """What has an answer that suits most, so that it is shown on demand."""
        return [self[name] for name in FURTHER]

    def why(self) -> list[forms.BoundField]:
        """What is about this change, and stands in no spec."""
        return [self[name] for name in WORDS]

    def words(self) -> ChangeWords:
        return ChangeWords.of_text(*(self.cleaned_data[name] for name in WORDS))

    def is_further_wrong(self) -> bool:
        return any(name in self.errors for name in FURTHER)

    def spec(self, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The spec that the form asks for: `base` with the form's fields and its first source put in their place."""
        given = self.cleaned_data
        before = self._kept(base or {})
        sources = list(before.get("sources") or [{}])
        first = sources[0]
        made = self._changed(first) if given["kind"] in KINDS else first
        wanted = [made, *sources[1:]]
        return {
            **{key: value for key, value in before.items() if key != UPGRADE_POLICY},
            "installNamespace": given["install_namespace"],
            "serviceAccountName": given["service_account"],
            "sources": wanted,
            **self._upgrades(base or {}, wanted),
            **{key: given[name] for name, key in CHOSEN.items() if given[name]},
            **{key: given[name] for name, key in LEFT_OUT.items() if given[name]},
        }

    def _changed(self, first: Mapping[str, Any]) -> dict[str, Any]:
        """The first source as the form asks for it, where its kind is one of ours."""
        given = self.cleaned_data
        auth: dict[str, Any] | None = {"secret": parse_reference(given["secret"])} if given["secret"] else None
        if auth and given["kind"] == "catalog" and given["secret_host"]:
            auth["host"] = given["secret_host"]
        before, kind = first.get(given["kind"]) or {}, KINDS[given["kind"]]
        asked = kind.to_spec(given)
        # What is written in another way than the form would, such as a selector, stays as it is.
        is_same = kind.to_form(before) == kind.to_form({key: value for key, value in asked.items() if value})
        body = {**before, **({} if is_same else asked), "auth": auth}
        kept = {"destination": first["destination"]} if first.get("destination") else {}
        if given["kind"] in REMOTE:
            interval = given["interval"] if "interval" in self.data else first.get("interval")
            kept |= {"interval": interval} if interval else {}
        stays = [key for key, value in body.items() if value or (is_same and key in before and before[key] == value)]
        return {"kind": given["kind"], given["kind"]: {key: body[key] for key in stays}, **kept}

    def _upgrades(self, base: Mapping[str, Any], sources: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """What the spec says of upgrades, which only one that takes from a catalog may; what counts by itself is not
        written down."""
        if not any(source.is_catalog for source in parse_spec({"sources": [*sources]}).sources):
            return {}
        chosen = self.cleaned_data["upgrade_policy"]
        if chosen and chosen != parse_spec(base).upgrade_policy:
            return {UPGRADE_POLICY: chosen}
        return {UPGRADE_POLICY: base[UPGRADE_POLICY]} if UPGRADE_POLICY in base else {}

    def _kept(self, base: Mapping[str, Any]) -> dict[str, Any]:
        """The spec without what the form was given; what it was not even asked for stays."""
        dropped = {key for name, key in LEFT_OUT.items() if name in self.data}
        if "rest" not in self.data:
            return {key: value for key, value in base.items() if key not in dropped}
        asked = {key: value for key, value in base.items() if key in ASKED - dropped}
        return {**asked, **self.cleaned_data["rest"]}


class NewForm(SpecForm):
    cluster = forms.ModelChoiceField(Cluster.objects.none(), to_field_name="name", empty_label=None)
    name = _text_field("Name", "Lowercase letters, digits and dashes; at most 52.", required=True)
    labels = LabelsField(label="Labels", help_text="key=value, one per line. Policies can select by label.")
    field_order = ["cluster", "name", "labels"]

    def __init__(self, clusters: Iterable[Cluster], *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        known = Cluster.objects.filter(pk__in=[cluster.pk for cluster in clusters])
        self.fields["cluster"].queryset = known  # type: ignore[attr-defined] # the stubs know a Field here only


def initial_of(spec: Mapping[str, Any], generation: int) -> dict[str, Any]:
    """What the form shows of a spec."""
    parsed = parse_spec(spec)
    source = parsed.sources[0] if parsed.sources else SpecSource("image", "", {})
    empty = {field.name: field.choices[0] if field.choices else "" for field in SOURCE_FIELDS}
    return {
        "install_namespace": spec.get("installNamespace", ""),
        "service_account": spec.get("serviceAccountName", ""),
        "kind": source.kind or "image",
        **empty,
        **(source.type.to_form(source.body) if source.type else {}),
        "upgrade_policy": str(parsed.upgrade_policy),
        "interval": source.interval,
        "secret": reference_words(source.auth.get("secret") or {}),
        "secret_host": source.auth.get("host", "") if source.is_catalog else "",
        **{name: spec.get(key, "") for name, key in CHOSEN.items()},
        **{name: spec.get(key) for name, key in LEFT_OUT.items()},
        "rest": {key: value for key, value in spec.items() if key not in ASKED},
        "generation": generation,
    }
