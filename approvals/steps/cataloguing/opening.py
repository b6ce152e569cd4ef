"""The source of a catalog as who wrote it may read it now (S08): nobody asks for a look, so it is read unattended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings

from approvals import access, catalogs
from approvals.access import Asker
from approvals.access.port import connect
from approvals.bundle_spec import SpecSource, parse_catalog_source
from approvals.clock import database_now
from approvals.models import Catalog
from approvals.policy import Lapse
from approvals.steps.sources import reader_as, source_of
from provisioner.errors import Forbidden, Unreachable
from provisioner.source import Source
from provisioner.values import AccessRequest, Identity, ObjectRef

WHERE = "spec.source"

# Why what was proved of an author counts no longer, where it is not too old.
LAPSED: dict[Lapse | None, str] = {
    Lapse.DISABLED: "do not count, because their account is disabled",
    Lapse.UNLINKED: "do not count, because their account is not linked to that identity of the cluster any more",
    Lapse.UNTRUSTED: "do not count, because the issuer or proxy that proved them is not trusted there any more",
}


def source_for(catalog: Catalog) -> Source:
    """The source that a catalog names, with its Secret where that is opened for who wrote the spec.

    Raises BadSource, Forbidden in words for people, and Unreachable.
    """
    source = _source_of(catalog.spec)
    wanted = source.reads()
    if not wanted:
        return source_of(source, _nothing)
    person = _proved_reader(catalog, wanted)
    return source_of(source, reader_as(person, catalog.cluster, connect(catalog.cluster), named_in=WHERE))


def _source_of(spec: Mapping[str, Any]) -> SpecSource:
    """As the spec names it; of a Helm repository its index."""
    source = parse_catalog_source(spec)
    if not is_helm(spec) or source.kind != "http":
        return source
    return replace(source, body={**source.body, "url": index_of(str(source.body.get("url") or ""))})


def is_helm(spec: Mapping[str, Any]) -> bool:
    return spec.get("format") == "helm"


def is_tags(spec: Mapping[str, Any]) -> bool:
    return spec.get("format") == "tags"


def index_of(url: str) -> str:
    """The address of a Helm repository's index."""
    return url if not url or url.endswith("/index.yaml") else f"{url.rstrip('/')}/index.yaml"


def _nothing(ref: ObjectRef) -> Any:
    raise Forbidden(f"{ref} is not read")


def _proved_reader(catalog: Catalog, wanted: list[ObjectRef]) -> Identity:
    """It is kept whether they passed: the right to read as them is given only then (rights)."""
    try:
        person = _reader(catalog, wanted)
    except Forbidden:
        catalogs.note_reader(catalog, is_proved=False)
        raise
    catalogs.note_reader(catalog, is_proved=True)
    return person


def _reader(catalog: Catalog, wanted: list[ObjectRef]) -> Identity:
    """Who named what is read. Whoever wrote another part of the source says where it is sent or what it opens, so each
    must be allowed to get it."""
    what = ", ".join(map(str, wanted))
    by_part = catalogs.authors_by_part(catalog.authors, catalog.spec)
    if by_part is None:
        raise Forbidden(
            f"{what} is not read, because nobody can prove who wrote the source of this Catalog. Apply the admission "
            "policies pratique-authors, then have someone who may get it delete the Catalog and create it again"
        )
    now, found = database_now(), dict[str, Identity]()
    for part, writer in by_part.items():
        asker = access.catalog_author(catalog, writer, now=now)
        if asker.identity not in found.values():
            _check_current(catalog, asker, what)
            for ref in wanted:
                _check_may_get(catalog, asker.identity, ref, part)
        found[part] = asker.identity
    return found[_naming(by_part)]


def _naming(parts: Iterable[str]) -> str:
    """The part that names the Secret or ConfigMap."""
    return next(one for one in parts if one.endswith((".auth.secret.name", "configMap.name")))


def _check_current(catalog: Catalog, asker: Asker, what: str) -> None:
    place, who = f"{catalog.cluster.name}/catalogs/{catalog.name}", asker.identity.username
    if asker.is_current:
        return
    if asker.lapse is Lapse.UNLISTED:
        raise Forbidden(
            f"{what} is not read: {who} wrote its source, and PRATIQUE_GITOPS_FILE does not list that controller for "
            "this Catalog and all that it names"
        )
    if place not in settings.PRATIQUE["UNATTENDED_READS"]:
        why = LAPSED.get(asker.lapse, f"were verified more than {settings.PRATIQUE['GROUPS_HOURS']} hours ago")
        raise Forbidden(
            f"{what} is not read: the groups of {who}, who wrote its source, {why}. They sign in again, or an operator "
            f"lists {place} in PRATIQUE_UNATTENDED_READS"
        )


def _check_may_get(catalog: Catalog, who: Identity, ref: ObjectRef, part: str) -> None:
    question = AccessRequest("get", resource=f"{ref.kind.lower()}s", namespace=ref.namespace, name=ref.name)
    answer = access.ask_for(who, catalog.cluster, question, fresh=True)
    if not answer.could_ask:
        raise Unreachable(answer.words)
    if not answer.allowed:
        raise Forbidden(
            f"{ref} is not read: {answer.words}, who wrote the source of this Catalog ({part}). Have someone who may "
            "get it delete the Catalog and create it again"
        )
