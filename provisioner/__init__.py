"""Pratique's library: content in, reports out, exactly those bytes applied. Knows no Django, queues or approvals."""
