"""What a person keeps for themselves in the browser: views of the inbox, and up to where they have read the news."""

from __future__ import annotations

from django.db import models

QUERY_LENGTH = 1_000
VIEW_NAME_LENGTH = 60


class SavedView(models.Model):
    """A filtered inbox under a name; `query` is what follows the `?` of its address. Nobody else is shown it."""

    user = models.ForeignKey("auth.User", on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=VIEW_NAME_LENGTH)
    query = models.CharField(max_length=QUERY_LENGTH, blank=True)
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="one_saved_view_of_a_name")]

    def __str__(self) -> str:
        return self.name


class NewsRead(models.Model):
    """Up to which entry of the audit a person has read what happened to their requests and reviews."""

    user = models.OneToOneField("auth.User", on_delete=models.CASCADE, related_name="+")
    number = models.PositiveBigIntegerField(default=0)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.user_id} up to {self.number}"
