"""What the issuer says of its people: read anew for each token."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.contrib.auth.models import User
from oauth2_provider.oauth2_validators import OAuth2Validator

from approvals.management.demo.issuer import settings as about

Person = dict[str, Any]


def people() -> dict[str, Person]:
    """By name: `sub`, `groups`, and whatever else is to be claimed."""
    found: dict[str, Person] = json.loads(about.ISSUER_PEOPLE.read_text())
    return found


def session_of(user: User) -> str:
    """The name of the person's present session here (`sid`): another one after each sign-in."""
    return hashlib.sha256(f"{user.pk} {user.last_login} {about.SECRET_KEY}".encode()).hexdigest()


class Validator(OAuth2Validator):  # type: ignore[misc]  # django-oauth-toolkit has no types
    """Whoever has left `people.json` gets no token any more, whatever they hold."""

    oidc_claim_scope = None

    def get_additional_claims(self, request: Any) -> Person:
        person = people()[request.user.username]
        return {**person, "preferred_username": request.user.username, "sid": session_of(request.user)}

    def validate_refresh_token(self, refresh_token: str, client: Any, request: Any, *args: Any, **kwargs: Any) -> bool:
        is_valid = super().validate_refresh_token(refresh_token, client, request, *args, **kwargs)
        return bool(is_valid) and request.user.username in people()
