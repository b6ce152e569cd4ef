"""The token that a call comes with: what it may do, and proving it anew (security-rules.md S33)."""

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
from approvals.api.description import Named
from approvals.api.parsing import BoundedJson
from approvals.api.scopes import caller_of
from approvals.errors import NotFound
from approvals.limits import client_address
from approvals.models import ApiToken


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
        return self._shown(request)

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
        return self._shown(request)

    def _shown(self, request: Http) -> Response:
        caller = caller_of(request)
        if caller.credential != Credential.API_TOKEN:
            raise NotFound("this call was authenticated by a browser session, not by a token")
        row = ApiToken.objects.prefetch_related("proofs__identity__cluster").get(pk=caller.holder_id or 0)
        return Response(shapes.TokenSerializer(row).data)
