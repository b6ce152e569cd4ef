"""How a command line gets a token: the only part of the API that is open to everybody."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request as Http
from rest_framework.response import Response

from approvals import services
from approvals.access import Credential
from approvals.api import filters
from approvals.api import serializers as shapes
from approvals.api.authentication import caller_of
from approvals.api.description import Named
from approvals.api.problems import BoundedJson
from approvals.api.resources import OpenViewSet
from approvals.errors import NotFound
from approvals.models import ApiToken
from approvals.rate_limits import Limit, client_address


class SignInViewSet(OpenViewSet):
    """Nobody is known here yet: whoever asks becomes known by the code of an issuer."""

    queryset = ApiToken.objects.none()
    limit = Limit("rest-sign-in", 60, 60)

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


class TokenViewSet(viewsets.GenericViewSet[Any]):
    """Tokens are made and revoked on the account page, by people who signed in."""

    parser_classes = [BoundedJson]
    metadata_class = Named
    filter_backends = []
    pagination_class = None
    queryset = ApiToken.objects.none()

    def initial(self, request: Http, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        filters.check_names(request.query_params, [])

    @extend_schema(responses=shapes.TokenSerializer)
    @action(detail=False)
    def current(self, request: Http, **_: Any) -> Response:
        """The scopes, clusters and expiry of this token, and when its identities were verified."""
        return self._token_answer(request)

    @extend_schema(responses={204: None})
    @current.mapping.delete
    def end(self, request: Http, **_: Any) -> Response:
        """Revoke this token."""
        services.end_api_token(by=caller_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=shapes.ProveInput, responses=shapes.TokenSerializer)
    @action(detail=False, methods=["post"], url_path="current/prove")
    def prove(self, request: Http, **_: Any) -> Response:
        """Verify the token's identities again with a cluster token for audience pratique.

        Groups are read anew. 403 if that token belongs to someone else.
        """
        wish = shapes.ProveInput(data=request.data)
        wish.is_valid(raise_exception=True)
        proved = services.prove(**wish.validated_data, address=client_address(request._request))
        services.prove_api_token(by=caller_of(request), proved=proved)
        return self._token_answer(request)

    def _token_answer(self, request: Http) -> Response:
        caller = caller_of(request)
        if caller.credential != Credential.API_TOKEN:
            raise NotFound("this call was authenticated by a browser session, not by a token")
        row = ApiToken.objects.prefetch_related("proofs__identity__cluster").get(pk=caller.holder_id or 0)
        return Response(shapes.TokenSerializer(row).data)
