"""`make demo`: everything that production has, on one machine, from nothing but Python."""
