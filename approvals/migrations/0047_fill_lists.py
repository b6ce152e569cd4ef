"""What lists filter and sort by is worked out for the requests that are there; no report is opened."""

from django.db import migrations, models

BATCH = 2_000
WEIGHTS = {"critical": 6, "breaking": 5, "unknown": 4, "dangerous": 3, "notable": 2, "safe": 1}
MAX_TEXT = 400
MAX_FORMAT = 60
MAX_NAME = 253
# Which rule a Secret meets is not for everybody. Finding.object of one is "Secret NAMESPACE/NAME".
RULES = """
INSERT INTO approvals_requestrule (request_id, rule, weight)
SELECT r.id, f.rule, MAX(CASE f.severity {cases} ELSE 0 END)
FROM approvals_finding f
JOIN approvals_report p ON p.id = f.report_id
JOIN approvals_request r ON r.id = p.request_id AND r.round = p.round
WHERE f.object NOT LIKE 'Secret %'
GROUP BY r.id, f.rule
"""


def fill(apps, schema_editor):
    """Mostly by statements over all rows: one by one, 100,000 of them take minutes."""
    request, report = apps.get_model("approvals", "Request"), apps.get_model("approvals", "Report")
    deployment = apps.get_model("approvals", "BundleDeployment").objects.filter(pk=models.OuterRef("deployment_id"))
    request.objects.update(cluster_id=models.Subquery(deployment.values("cluster_id")[:1]))
    present = report.objects.filter(request=models.OuterRef("pk"), round=models.OuterRef("round")).order_by()
    for severity, weight in WEIGHTS.items():
        request.objects.filter(models.Exists(present.filter(worst=severity))).update(weight=weight)
    named = request.objects.order_by().exclude(spec__format=None).exclude(spec__format="")
    for name in set(named.values_list("spec__format", flat=True)) - {"plain"}:
        request.objects.filter(spec__format=name).update(format=str(name)[:MAX_FORMAT])
    _fill_beside(apps, request, present)
    cases = " ".join(f"WHEN '{severity}' THEN {weight}" for severity, weight in WEIGHTS.items())
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(RULES.format(cases=cases))


def _fill_beside(apps, request, present):
    text, asker = apps.get_model("approvals", "RequestText"), apps.get_model("approvals", "RequestAsker")
    rows = request.objects.order_by("pk").annotate(headline=models.Subquery(present.values("headline")[:1]))
    rows = rows.values_list("pk", "deployment__name", "headline", "requesters")
    last = 0
    while found := list(rows.filter(pk__gt=last)[:BATCH]):
        last = found[-1][0]
        text.objects.bulk_create(text(request_id=pk, text=_text(name, words)) for pk, name, words, _ in found)
        asker.objects.bulk_create(
            asker(request_id=pk, username=name) for pk, _, _, people in found for name in _names(people)
        )


def _text(name, headline):
    return "\n".join([name, *map(str, headline or ())]).casefold()[:MAX_TEXT]


def _names(people):
    return sorted({str(one["username"])[:MAX_NAME] for one in people if one.get("username")})


class Migration(migrations.Migration):
    dependencies = [("approvals", "0046_lists")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
