"""An outcome's object with the longest names that Kubernetes takes: two that were cut alike would share a row."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0012_packed_reports_only")]

    operations = [
        migrations.AlterField(model_name="outcome", name="object", field=models.CharField(max_length=640)),
    ]
