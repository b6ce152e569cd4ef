"""Plug-ins: what is found of them, and what becomes of one that is broken."""
