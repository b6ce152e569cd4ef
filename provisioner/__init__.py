"""Pratique's library: content in, reports out, exactly those bytes applied. Knows nothing of Django, queues or approvals."""
