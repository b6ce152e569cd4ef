"""The form of a BundleDeployment: one source, who installs it, and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms, template
from django.conf import settings
from django.core.validators import RegexValidator

from approvals.models import Cluster
from approvals.source_refs import INTERVAL_FORM, UpgradePolicy, body_of, catalogs_named, is_catalog, upgrade_policy
from approvals.web.fields import LabelsField, YamlField, mono
from provisioner.masking import masked_states
from provisioner.render import write

# Filters of the templates of these pages.
register = template.Library()

DEFAULT_FORMAT = "plain"
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
KINDS = [
    ("image", "OCI image"),
    ("git", "Git repository"),
    ("http", "Archive over HTTP"),
    ("configMap", "ConfigMap"),
    ("catalog", "Package of a catalog"),
]
GIT_REFS = [("tag", "tag"), ("branch", "branch"), ("commit", "commit")]
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
}
FURTHER = (*CHOSEN, *LEFT_OUT, "rest")
# What the form asks for by itself, and what has a door of its own.
UPGRADE_POLICY = "upgradePolicy"
OWN_FIELDS = {"installNamespace", "serviceAccountName", "sources", "paused", UPGRADE_POLICY}
ASKED = OWN_FIELDS | {*CHOSEN.values(), *LEFT_OUT.values()}
FIELDS = {
    "image": ("image",),
    "git": ("repository", "git_ref", "git_name", "directory"),
    "http": ("url", "checksum"),
    "configMap": ("config_map",),
    "catalog": ("catalog", "package", "channel", "version"),
}
REMOTE = ["image", "git", "http"]
NEEDED = {
    "image": ("image",),
    "git": ("repository", "git_name"),
    "http": ("url", "checksum"),
    "configMap": ("config_map",),
    "catalog": ("catalog", "package"),
}


@dataclass(frozen=True, slots=True)
class FoldedYaml:
    """A part of a spec as YAML, which stands folded where it is long. Values that look like credentials are hidden."""

    title: str
    text: str

    @property
    def is_short(self) -> bool:
        return self.text.count("\n") <= SHORT_LINES


def format_of(spec: Mapping[str, Any]) -> str:
    return str(spec.get("format") or DEFAULT_FORMAT)


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
    policy = upgrade_policy(spec)
    return (policy, UPGRADE_WORDS[policy]) if catalogs_named(spec) else None


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


def _text(
    label: str, help_text: str = "", *, required: bool = False, offered: str = "", **more: Any
) -> forms.CharField:
    """A line of text; `offered` is the id of the names to pick from."""
    widget = forms.TextInput(attrs=mono(**({"list": offered} if offered else {})))
    return forms.CharField(label=label, help_text=help_text, required=required, max_length=2000, widget=widget, **more)


def _needed(kind: str) -> tuple[str, ...]:
    """The fields without which a source of this kind fails; a checksum is one unless the operator allows none."""
    is_allowed = settings.PRATIQUE["MUTABLE_HTTP"]
    return tuple(name for name in NEEDED.get(kind, ()) if not (is_allowed and name == "checksum"))


@dataclass(frozen=True, slots=True)
class Group:
    """The fields that are for sources of these kinds; each with whether such a source needs it."""

    kinds: list[str]
    words: str
    fields: list[tuple[forms.BoundField, bool]]


class SpecForm(forms.Form):
    """The parts of a spec that people change. What it does not show stays as it is."""

    install_namespace = _text("Install namespace", "The namespace must exist.", required=True, offered="namespaces")
    service_account = _text(
        "ServiceAccount", "All objects are applied as this ServiceAccount.", required=True, offered="accounts"
    )
    kind = forms.ChoiceField(label="Source", choices=KINDS)
    image = _text("Image", "registry/name:tag or @sha256:…")
    repository = _text("Repository", "https:// or ssh:// URL")
    git_ref = forms.ChoiceField(label="Git reference", choices=GIT_REFS, required=False)
    git_name = _text("Tag, branch or commit")
    directory = _text("Directory", "Directory in the repository")
    url = _text("Archive URL", "URL of a .tar.gz, .zip or YAML file")
    checksum = _text("Checksum", "sha256: followed by the output of sha256sum")
    config_map = _text("ConfigMap", "namespace/name, or a name in the install namespace. Each key is a file.")
    catalog = _text("Catalog", "The name of a Catalog of the cluster. You need permission to get it.")
    package = _text(
        "Package",
        "The name of the package or chart. The format, below in the other spec fields, is registry-v1 for a package of "
        "OLM and helm for a chart.",
    )
    channel = _text("Channel", "If empty, every channel counts.")
    version = _text(
        "Versions",
        "A constraint such as >=1.2.0 <2.0.0: nothing else is taken, now or as an upgrade. One version alone, such as "
        "1.2.0, is pinned: nothing newer is offered. If empty, any version may be taken; of a chart without a channel, "
        "pre-releases only of the version of which one runs already.",
    )
    upgrade_policy = forms.ChoiceField(
        label="Upgrades",
        choices=UPGRADES,
        required=False,
        initial=UpgradePolicy.REQUEST,
        help_text="The upgradePolicy. Grants are policies that can approve a request instead of people.",
    )
    secret = _text(
        "Secret", "namespace/name, or a name in the install namespace. You need permission to get this Secret."
    )
    secret_host = _text(
        "Host that gets the Secret",
        "The catalog says where a package is, so name the host, such as registry.example.com. Not needed for a docker "
        "configuration, which names its hosts.",
    )
    interval = _text(
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
    rest = YamlField(
        label="Other spec fields",
        help_text="YAML: format, config, optionalKinds, revisionHistoryLimit and other fields of the CRD.",
        example="{format: plain, revisionHistoryLimit: 10}",
    )
    generation = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        kind = self.initial.get("kind", "image")
        if kind not in FIELDS:
            choices = [(kind, f"{kind} (a plug-in's; it stays as it is)"), *KINDS]
            self.fields["kind"].choices = choices  # type: ignore[attr-defined] # the stubs know a Field here only

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for name in _needed(cleaned.get("kind", "")):
            if not cleaned.get(name):
                self.add_error(name, "This field is required for this kind of source.")
        for name in ("config_map", "secret"):
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

    def first(self) -> list[forms.BoundField]:
        beside = {"secret", "secret_host", "interval", "upgrade_policy"}
        later = {*FURTHER, *beside, *(name for names in FIELDS.values() for name in names)}
        return [field for field in self if field.name not in later]

    def groups(self) -> list[Group]:
        """What a source is asked for, by its kind."""
        groups = [
            Group([kind], words, [(self[name], name in _needed(kind)) for name in FIELDS[kind]])
            for kind, words in KINDS
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

    def is_further_wrong(self) -> bool:
        return any(name in self.errors for name in FURTHER)

    def spec(self, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The spec that the form asks for: `base` with the form's fields and its first source put in their place."""
        given = self.cleaned_data
        before = self._kept(base or {})
        sources = list(before.get("sources") or [{}])
        first = sources[0]
        made = self._changed(first) if given["kind"] in FIELDS else first
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
        auth: dict[str, Any] | None = {"secret": _reference(given["secret"])} if given["secret"] else None
        if auth and given["kind"] == "catalog" and given["secret_host"]:
            auth["host"] = given["secret_host"]
        body = {**(first.get(given["kind"]) or {}), **self._source(), "auth": auth}
        kept = {"destination": first["destination"]} if first.get("destination") else {}
        if given["kind"] in REMOTE:
            interval = given["interval"] if "interval" in self.data else first.get("interval")
            kept |= {"interval": interval} if interval else {}
        return {"kind": given["kind"], given["kind"]: {key: value for key, value in body.items() if value}, **kept}

    def _upgrades(self, base: Mapping[str, Any], sources: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """What the spec says of upgrades, which only one that takes from a catalog may; what counts by itself is not
        written down."""
        if not any(map(is_catalog, sources)):
            return {}
        chosen = self.cleaned_data["upgrade_policy"]
        if chosen and chosen != upgrade_policy(base):
            return {UPGRADE_POLICY: chosen}
        return {UPGRADE_POLICY: base[UPGRADE_POLICY]} if UPGRADE_POLICY in base else {}

    def _kept(self, base: Mapping[str, Any]) -> dict[str, Any]:
        """The spec without what the form was given; what it was not even asked for stays."""
        dropped = {key for name, key in LEFT_OUT.items() if name in self.data}
        if "rest" not in self.data:
            return {key: value for key, value in base.items() if key not in dropped}
        asked = {key: value for key, value in base.items() if key in ASKED - dropped}
        return {**asked, **self.cleaned_data["rest"]}

    def _source(self) -> dict[str, Any]:
        given = self.cleaned_data
        if given["kind"] == "image":
            return {"ref": given["image"]}
        if given["kind"] == "git":
            ref = {given["git_ref"] or "tag": given["git_name"]}
            return {"repository": given["repository"], "ref": ref, "directory": given["directory"]}
        if given["kind"] == "catalog":
            return {"name": given["catalog"], **{key: given[key] for key in ("package", "channel", "version")}}
        if given["kind"] == "configMap":
            return {"namespace": "", **_reference(given["config_map"])}
        return {"url": given["url"], "checksum": given["checksum"]}


def _reference(text: str) -> dict[str, str]:
    """`namespace/name` or `name` as the spec writes it."""
    namespace, _, name = text.rpartition("/")
    return {"name": name, **({"namespace": namespace} if namespace else {})}


def _words(reference: Mapping[str, Any]) -> str:
    return "/".join(str(reference[key]) for key in ("namespace", "name") if reference.get(key))


class NewForm(SpecForm):
    cluster = forms.ModelChoiceField(Cluster.objects.none(), to_field_name="name", empty_label=None)
    name = _text("Name", "Lowercase letters, digits and dashes; at most 52.", required=True)
    labels = LabelsField(label="Labels", help_text="key=value, one per line. Policies can select by label.")
    field_order = ["cluster", "name", "labels"]

    def __init__(self, clusters: Iterable[Cluster], *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        known = Cluster.objects.filter(pk__in=[cluster.pk for cluster in clusters])
        self.fields["cluster"].queryset = known  # type: ignore[attr-defined] # the stubs know a Field here only


def initial_of(spec: Mapping[str, Any], generation: int) -> dict[str, Any]:
    """What the form shows of a spec."""
    source = (spec.get("sources") or [{}])[0]
    kind = source.get("kind", "image")
    body = body_of(source)
    ref = body.get("ref") if kind == "git" else None
    git_ref = next((name for name, _ in GIT_REFS if (ref or {}).get(name)), "tag")
    return {
        "install_namespace": spec.get("installNamespace", ""),
        "service_account": spec.get("serviceAccountName", ""),
        "kind": kind,
        "image": body.get("ref", "") if kind == "image" else "",
        "repository": body.get("repository", ""),
        "git_ref": git_ref,
        "git_name": (ref or {}).get(git_ref, ""),
        "directory": body.get("directory", ""),
        "url": body.get("url", ""),
        "checksum": body.get("checksum", ""),
        "config_map": _words(body) if kind == "configMap" else "",
        "catalog": body.get("name", "") if kind == "catalog" else "",
        **{key: body.get(key, "") if kind == "catalog" else "" for key in ("package", "channel", "version")},
        "upgrade_policy": str(upgrade_policy(spec)),
        "interval": source.get("interval", ""),
        "secret": _words((body.get("auth") or {}).get("secret") or {}),
        "secret_host": (body.get("auth") or {}).get("host", "") if kind == "catalog" else "",
        **{name: spec.get(key, "") for name, key in CHOSEN.items()},
        **{name: spec.get(key) for name, key in LEFT_OUT.items()},
        "rest": {key: value for key, value in spec.items() if key not in ASKED},
        "generation": generation,
    }
