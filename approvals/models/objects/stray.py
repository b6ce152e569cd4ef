"""Writes that were begun and not heard of, by workers that died or stood still."""

from __future__ import annotations

from django.db import models


class Stray(models.Model):
    """An object that a write with this `nonce` may still create, although its worker is gone (security-rules.md S20).

    As long as the inventory knows the nonce, the object is the deployment's. Once it is dropped, what turns up with it
    is taken away. `look_at` is when that is looked for again, `begun_at` when the write was found not heard of.
    """

    deployment = models.ForeignKey("approvals.BundleDeployment", on_delete=models.CASCADE, related_name="strays")
    revision = models.ForeignKey("approvals.Revision", on_delete=models.SET_NULL, null=True, related_name="+")
    group = models.CharField(max_length=253, blank=True)
    version = models.CharField(max_length=63)
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=253, blank=True)
    name = models.CharField(max_length=253)
    nonce = models.CharField(max_length=63, unique=True)
    begun_at = models.DateTimeField()
    look_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
