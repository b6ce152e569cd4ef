"""Whether each field that changes was judged by a rule, and what is said of those that none judged (S36)."""
