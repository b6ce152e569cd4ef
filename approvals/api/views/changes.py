"""What calls that change something share: how their body is read, and the door that they come by."""

from __future__ import annotations

from typing import Any

from rest_framework.serializers import BaseSerializer

VIA = "rest"


def valid(shape: BaseSerializer[Any]) -> dict[str, Any]:
    shape.is_valid(raise_exception=True)
    return dict(shape.validated_data)
