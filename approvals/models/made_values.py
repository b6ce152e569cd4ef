"""What charts made up, kept for the deployments that they made it up for."""

from __future__ import annotations

from django.db import models

from approvals.encryption.fields import EncryptedTextField


class KeptValue(models.Model):
    """A value that a chart made up, given to each later rendering for the same deployment, and shown to nobody.

    A place gets a new generation where a request replaces its value; those of before stay for who goes back.
    """

    class Origin(models.TextChoices):
        CHART = "chart"
        CLUSTER = "cluster"
        ROTATION = "rotation"

    deployment = models.ForeignKey("approvals.BundleDeployment", on_delete=models.CASCADE, related_name="kept_values")
    # provisioner.values.MadePlace as JSON, and its key.
    place = models.JSONField()
    place_key = models.CharField(max_length=64)
    sort = models.CharField(max_length=20)  # provisioner.values.MadeSort
    generation = models.PositiveIntegerField(help_text="from 1, of this place")
    value = EncryptedTextField(place="made value of deployment", bound_to=["deployment_id", "place_key", "generation"])
    origin = models.CharField(max_length=10, choices=Origin.choices, default=Origin.CHART)
    first_request = models.ForeignKey("approvals.Request", on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True, help_text="when the certificate ends")

    class Meta:
        ordering = ["place_key", "generation"]
        constraints = [
            models.UniqueConstraint(
                fields=["deployment", "place_key", "generation"], name="made_value_once_per_generation"
            )
        ]

    @property
    def object(self) -> str:
        """The object that holds it, in words; of a name that was made up the file of the template."""
        name = "/".join(filter(None, [self.place["namespace"], self.place["name"]]))
        return f"{self.place['kind']} {name}" if self.place["name"] else str(self.place["kind"])

    @property
    def path(self) -> str:
        """Where in the object, as people write it, such as `data.password`."""
        steps = str(self.place["path"]).removeprefix("/").replace("/", ".").replace("~1", "/").replace("~0", "~")
        return f"{steps} ({self.place['number'] + 1})" if self.place.get("number") else steps

    def __str__(self) -> str:
        return f"{self.path} of {self.object}"
