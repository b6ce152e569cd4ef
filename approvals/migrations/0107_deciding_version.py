from django.db import migrations


class Migration(migrations.Migration):
    """What a writer has read is named by uid and generation, which a status that is written does not change."""

    dependencies = [("approvals", "0102_likeness")]
    operations = [migrations.RemoveField(model_name="decidingobject", name="resource_version")]
