"""The pages of catalogs: which there are and how each stands, what one offers, a package, and what would change.

The words and pictures of a package are its publisher's: they are shown as text, and an icon as points alone.
"""
