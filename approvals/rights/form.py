"""Which form of impersonation a cluster serves, found out by being refused."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from approvals.rights.needs import ImpersonationForm
from provisioner.cluster.client.access import review_self
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import Forbidden
from provisioner.values import Identity

# KEP-5284: beta, and so on by default, from here on. An operator may switch the gate ConstrainedImpersonation off.
BETA = (1, 36)
_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_CONSTRAINED = re.compile(r"\bimpersonate(-on)?:[a-z]")


@dataclass(frozen=True, slots=True)
class Chosen:
    """`why` is for people, and begins after "because"."""

    form: ImpersonationForm
    why: str


def choose_form(api: Api) -> Chosen:
    """The constrained form where the API server says that it knows it, else the legacy one.

    The API server refuses an impersonation in the words of the rights that it looked for: nobody's name is used to ask
    who one is, which changes nothing. Legacy roles work on every server. Raises PratiqueError where it does not answer.
    """
    nobody = Identity(f"pratique:nobody:{secrets.token_hex(8)}")
    version = _known(api.version())
    try:
        review_self(api.acting_as(nobody))
    except Forbidden as exc:
        if _CONSTRAINED.search(exc.in_full):
            return Chosen(
                ImpersonationForm.CONSTRAINED,
                f"the API server ({version}) checks the verbs of constrained impersonation",
            )
        words = f"the API server ({version}) checked only the legacy verb"
        if _has_beta(version):
            words += (
                "; its version supports the constrained form: either that is disabled, or this account last "
                "impersonated someone by legacy rights, which the API server tries first. Use --form "
                "constrained to choose it"
            )
        return Chosen(ImpersonationForm.LEGACY, words)
    if _has_beta(version):
        return Chosen(
            ImpersonationForm.CONSTRAINED, f"the API server is {version}, which serves it unless it was switched off"
        )
    return Chosen(ImpersonationForm.LEGACY, f"the API server is {version}; the constrained form needs 1.36")


def _known(version: str) -> str:
    """A version in our words: this stands in a comment of what an operator applies."""
    found = _VERSION.match(version)
    return f"v{int(found[1])}.{int(found[2])}" if found else "of an unknown version"


def _has_beta(version: str) -> bool:
    found = _VERSION.match(version)
    return found is not None and (int(found[1]), int(found[2])) >= BETA
