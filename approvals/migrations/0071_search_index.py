"""An index by which PostgreSQL finds a part of a name or of a headline among many requests.

It needs the extension pg_trgm, which comes with PostgreSQL and which an owner of the database may create. Where that
is not possible, lists are searched as before, which takes longer the more requests there are, and the migration says
what an administrator can run. SQLite searches as before.

Can be interrupted and run again, and stops nobody who writes.
"""

import logging

from django.db import DatabaseError, migrations

EXTENSION = "CREATE EXTENSION IF NOT EXISTS pg_trgm"
PLACE = "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'"
INDEX = "CREATE INDEX CONCURRENTLY request_text_parts ON approvals_requesttext USING gin (text {place}gin_trgm_ops)"
# Also one that was not finished, which stays, and is not used.
DROP = "DROP INDEX CONCURRENTLY IF EXISTS request_text_parts"
TOLD = (
    "the search through names and headlines has no index, and takes longer the more requests there are: the extension "
    "pg_trgm could not be used: %s. To mend it, run these as an administrator of the database, at any time: %s; %s; %s;"
)
logger = logging.getLogger(__name__)


def build(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        try:
            cursor.execute(EXTENSION)
            cursor.execute(PLACE)
            (schema,) = cursor.fetchone()
            cursor.execute(DROP)
            cursor.execute(INDEX.format(place=schema_editor.quote_name(schema) + "."))
        except DatabaseError as exc:
            error = " ".join(str(exc).split())
            logger.warning(TOLD, error, EXTENSION, DROP, INDEX.format(place=""), extra={"error": error})


def drop(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(DROP)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("approvals", "0070_deletions_and_lookups")]

    operations = [migrations.RunPython(build, drop)]
