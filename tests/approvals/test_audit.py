"""The chain of the audit: nobody edits it, and where it was cut is told (promise 7)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.db import DatabaseError, connection, transaction

from approvals import audit
from approvals.models import AuditEntry


@pytest.mark.django_db
def test_promise_7_the_chain_tells_where_it_was_cut() -> None:
    with transaction.atomic():
        for verb in ("a", "b", "c"):
            audit.record(verb=verb, actor=audit.MACHINE)
    assert audit.verify_chain().is_whole
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER approvals_auditentry_no_update")
        cursor.execute("UPDATE approvals_auditentry SET actor = 'mallory' WHERE number = 2")
    assert audit.verify_chain().broken_at == 2


@pytest.mark.django_db
@pytest.mark.parametrize("change", ["update", "delete"])
def test_promise_7_the_database_refuses_to_edit_the_audit(change: str) -> None:
    with transaction.atomic():
        audit.record(verb="a", actor=audit.MACHINE)
    with pytest.raises(DatabaseError), transaction.atomic():
        AuditEntry.objects.update(verb="b") if change == "update" else AuditEntry.objects.all().delete()


@pytest.mark.django_db
def test_an_audit_row_outside_a_transaction_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "connection", SimpleNamespace(in_atomic_block=False))
    with pytest.raises(RuntimeError):
        audit.record(verb="a", actor=audit.MACHINE)
