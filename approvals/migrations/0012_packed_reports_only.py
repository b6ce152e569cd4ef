"""The packed report takes the place of the one of JSON."""

from django.db import migrations, models

from approvals.packed import PackedJSONField


class Migration(migrations.Migration):
    dependencies = [("approvals", "0011_packed_reports")]
    operations = [
        migrations.RemoveField("report", "body"),
        migrations.RenameField("report", "packed", "body"),
        migrations.AlterField("report", "body", PackedJSONField()),
    ]
