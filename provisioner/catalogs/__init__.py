"""File-based catalogs of OLM: which versions of a package there are, and which of them may follow which.

A catalog is untrusted: it is read document by document within limits, and what is wrong in it becomes a problem of
the catalog, so that one bad package hides no other.
"""
