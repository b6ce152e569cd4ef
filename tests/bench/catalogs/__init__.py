"""Figures of catalogs: how long a large one takes to be read, in how much memory, and how soon its pages answer."""
