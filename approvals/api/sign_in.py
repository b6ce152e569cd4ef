"""How a command line gets a token: the only part of the API that is open to everybody."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.permissions import AllowAny
from rest_framework.request import Request as Http
from rest_framework.response import Response

from approvals import services
from approvals.api import filters
from approvals.api import serializers as shapes
from approvals.api.description import Named
from approvals.api.parsing import BoundedJson
from approvals.limits import Limit, client_address, take
from approvals.models import ApiToken

ASKING = Limit("rest-sign-in", 60, 60)
WORDS = "too many requests: try again in {time}"


class SignInViewSet(viewsets.GenericViewSet[Any]):
    """Nobody is known here yet, and a browser's session changes nothing: limits are those of the client's address."""

    parser_classes = [BoundedJson]
    metadata_class = Named
    authentication_classes = []
    permission_classes = [AllowAny]
    throttle_classes = []
    filter_backends = []
    pagination_class = None
    queryset = ApiToken.objects.none()

    def initial(self, request: Http, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        take(ASKING, client_address(request._request), words=WORDS)
        filters.check_names(request.query_params, [])

    @extend_schema(responses=shapes.CommandLineIssuerSerializer(many=True), auth=[])
    @action(detail=False)
    def issuers(self, request: Http, **_: Any) -> Response:
        """The issuers at which a command line can sign in. Needs no token."""
        return Response(shapes.CommandLineIssuerSerializer(services.command_line_issuers(), many=True).data)

    @extend_schema(request=shapes.ExchangeInput, responses={201: shapes.NewTokenSerializer}, auth=[])
    @action(detail=False, methods=["post"])
    def exchange(self, request: Http, **_: Any) -> Response:
        """Exchange an issuer's code for an API token with the scope read. Needs no token.

        The code came back to a loopback address, and `verifier` is the secret that its sign-in began with (PKCE).
        The token ends after PRATIQUE_GROUPS_HOURS.
        """
        shape = shapes.ExchangeInput(data=request.data)
        shape.is_valid(raise_exception=True)
        wish = dict(shape.validated_data)
        row, text = services.sign_in_command_line(
            issuer=wish["issuer"],
            back=services.CommandLineCode(wish["code"], wish["redirect_uri"], wish["verifier"], wish["service"]),
            name=wish["name"],
            address=client_address(request._request),
        )
        known = ApiToken.objects.prefetch_related("proofs__identity__cluster").get(pk=row.pk)
        made = shapes.NewTokenSerializer({"token": text, "about": known})
        return Response(made.data, status=status.HTTP_201_CREATED)
