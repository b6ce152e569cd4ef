"""External checks over REST: where they answer, with the token of their event, and the secret that signs the events."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.authentication import get_authorization_header
from rest_framework.request import Request as Http
from rest_framework.response import Response

from approvals import services
from approvals.api.authentication import caller_of
from approvals.api.deciding import DecidingViewSet
from approvals.api.resources import VIA, OpenViewSet, valid
from approvals.api.serializers.deciding import CheckAnswerInput, CheckRunSerializer, CheckSecretSerializer
from approvals.errors import CheckTokenRefused
from approvals.models import CheckRun
from approvals.rate_limits import CHECK_TOKEN, Attempt, Limit, client_address


class CheckRunViewSet(OpenViewSet):
    """The token of the event stands for the run, and for no person: it is good for nothing else here."""

    queryset = CheckRun.objects.none()
    limit = Limit("check-answers", 600, 60)

    @extend_schema(request=CheckAnswerInput, responses=CheckRunSerializer, auth=[])
    def answer(self, request: Http, run: uuid.UUID, **_: Any) -> Response:
        """Answer an external check, with the token of its event as `Authorization: Bearer prc_…`.

        `pending` may be followed by `passed` or `failed`, and `passed` by `failed`; the same once more changes nothing.
        409 once the time for an answer is over, the check was asked again, or the subject is no longer decided on.
        """
        words = get_authorization_header(request).split()
        # The check, not the run: one that has answered before is let in, whatever others try from its address.
        check = CheckRun.objects.filter(uid=run).values_list("check_uid", flat=True).first()
        attempt = Attempt(CHECK_TOKEN, client_address(request._request), check or "")
        attempt.begin()
        if len(words) != 2 or words[0].lower() != b"bearer":
            raise CheckTokenRefused("expected `Authorization: Bearer TOKEN` with the token of the event")
        token = words[1].decode(errors="replace")
        services.check_run_token(run=run, token=token)
        attempt.succeed()
        wish = valid(CheckAnswerInput(data=request.data))
        return Response(CheckRunSerializer(services.answer_check(run=run, token=token, **wish)).data)


class ExternalCheckViewSet(DecidingViewSet):
    """ExternalChecks of one cluster, beside what all kinds have."""

    @extend_schema(request=None, responses={201: CheckSecretSerializer})
    def secret(self, request: Http, **_: Any) -> Response:
        """Make the secret that signs the events of this check; needs `update` on it. It is shown this once.

        The secret before signs as well for 24 hours.
        """
        cluster = self._cluster(self._name)
        text = services.make_check_secret(by=caller_of(request), cluster=cluster, name=self._name, via=VIA)
        return Response(CheckSecretSerializer({"secret": text}).data, status=status.HTTP_201_CREATED)
