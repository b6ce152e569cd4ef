"""Catalogs that clusters name, and what was read from them, one edition after the other."""

from __future__ import annotations

from django.db import models

from approvals.json_packing import PackedJSONField


class Catalog(models.Model):
    """A copy of a Catalog as it was last seen in the cluster, and the edition of it that everybody is shown.

    `problem` says why it could not be looked at since `problem_since`; what is wrong inside is the edition's.
    """

    cluster = models.ForeignKey("approvals.Cluster", on_delete=models.CASCADE, related_name="catalogs")
    uid = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    generation = models.PositiveBigIntegerField()
    resource_version = models.CharField(max_length=63)
    spec = models.JSONField()
    labels = models.JSONField(default=dict, db_default={}, help_text="by which sources of deployments select it")
    authors = models.JSONField(
        default=list, help_text="who wrote which part of the source, as requesters are kept; empty: not known"
    )
    is_writer_proved = models.BooleanField(
        default=False,
        db_default=False,
        help_text="whether all who wrote the source were found to be allowed to get what it names",
    )
    status = models.JSONField(default=dict, help_text="what the cluster was told last")
    seen_at = models.DateTimeField()
    edition = models.ForeignKey(
        "approvals.CatalogEdition", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    etag = models.CharField(max_length=510, blank=True)
    looked_at = models.DateTimeField(null=True, blank=True, help_text="when the last look that succeeded began")
    tried_at = models.DateTimeField(null=True, blank=True)
    look_at = models.DateTimeField(null=True, blank=True, help_text="when to look again; null: never")
    reading_since = models.DateTimeField(
        null=True, blank=True, help_text="since when a worker looks at its source; null: it waits, or is not due"
    )
    show_at = models.DateTimeField(
        null=True, blank=True, help_text="since when the cluster is to be told; null: it was"
    )
    failures = models.PositiveIntegerField(default=0, help_text="looks that failed since the last one that succeeded")
    problem_code = models.CharField(max_length=60, blank=True)
    problem = models.TextField(blank=True)
    problem_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="catalog_name_once_per_cluster"),
            models.UniqueConstraint(fields=["cluster", "uid"], name="catalog_uid_once_per_cluster"),
        ]
        indexes = [
            models.Index(fields=["look_at"], condition=models.Q(look_at__isnull=False), name="catalog_due"),
            models.Index(fields=["show_at"], condition=models.Q(show_at__isnull=False), name="catalog_to_show"),
        ]

    @property
    def priority(self) -> int:
        """Which of several catalogs with the same package is taken: the highest one."""
        found = self.spec.get("priority")
        return found if isinstance(found, int) else 0

    def __str__(self) -> str:
        return self.name


class CatalogEdition(models.Model):
    """What one reading of a catalog found. `read_at` is null until all of it is there: nobody is shown it before."""

    catalog = models.ForeignKey(Catalog, on_delete=models.CASCADE, related_name="editions")
    digest = models.CharField(max_length=80)
    reading = models.PositiveIntegerField(
        default=0,
        db_default=0,
        help_text="the number of the rules by which it was read (READING); 0: before they had one",
    )
    began_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True, blank=True)
    package_count = models.PositiveIntegerField(default=0)
    channel_count = models.PositiveIntegerField(default=0)
    bundle_count = models.PositiveIntegerField(default=0)
    problem_count = models.PositiveIntegerField(default=0)
    problems = PackedJSONField(default=list, help_text="where and words of each")

    def __str__(self) -> str:
        return self.digest


class CatalogPackage(models.Model):
    """A package of an edition: what lists show of it, and its channels and bundles as one document.

    Only whole packages are read, and the largest has some hundred bundles, so that a row for each would be read anyway.
    """

    edition = models.ForeignKey(CatalogEdition, on_delete=models.CASCADE, related_name="packages")
    name = models.CharField(max_length=253)
    display_name = models.CharField(max_length=253, blank=True)
    summary = models.CharField(max_length=1000, blank=True)
    provider = models.CharField(max_length=253, blank=True)
    default_channel = models.CharField(max_length=253, blank=True)
    head = models.CharField(max_length=253, blank=True, help_text="the bundle in which the default channel ends")
    head_version = models.CharField(max_length=500, blank=True)
    channel_count = models.PositiveIntegerField()
    bundle_count = models.PositiveIntegerField()
    is_deprecated = models.BooleanField()
    searched_text = models.TextField(help_text="in which a search looks, in small letters")
    searched_keywords = models.TextField(
        blank=True, default="", db_default="", help_text="its keywords in small letters, one a line"
    )
    document = PackedJSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["edition", "name"], name="package_once_per_edition")]

    def __str__(self) -> str:
        return self.name


class CatalogPresentation(models.Model):
    """The long words, the facts and the icon of a package, which few pages need."""

    package = models.OneToOneField(CatalogPackage, on_delete=models.CASCADE, related_name="presentation")
    description = models.TextField(blank=True)
    icon = models.BinaryField(default=bytes)
    icon_type = models.CharField(max_length=40, blank=True)
    no_icon = models.CharField(max_length=500, blank=True, help_text="why the icon that it brings is not kept")
    facts = models.JSONField(default=dict, db_default={}, help_text="as packed_facts has them")

    def __str__(self) -> str:
        return f"presentation {self.pk}"


class CatalogHistory(models.Model):
    """Which content each bundle of a package had in any edition: a version shall not come to mean something else.

    It belongs to the name of a Catalog, as what is deployed does: one that is deleted and created again has the same.
    `bundles` is a list of name, version, content, when it was seen last, and what a change replaced when.
    """

    cluster = models.ForeignKey("approvals.Cluster", on_delete=models.CASCADE, related_name="+")
    catalog_name = models.CharField(max_length=253)
    package = models.CharField(max_length=253)
    bundles = PackedJSONField()
    change_count = models.PositiveIntegerField(default=0)
    gone_at = models.DateTimeField(null=True, blank=True, help_text="since when there is no Catalog of this name")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "catalog_name", "package"], name="history_once_per_package")
        ]

    def __str__(self) -> str:
        return self.package
