"""An index from which PostgreSQL lists deployments, and requests by their deployment, in the order of their names."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0057_kubectl_reviews")]

    operations = [
        migrations.AddIndex("bundledeployment", models.Index(fields=["name", "id"], name="deployment_by_name")),
    ]
