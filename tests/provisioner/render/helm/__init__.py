"""Helm charts become the objects that Helm would make of them."""
