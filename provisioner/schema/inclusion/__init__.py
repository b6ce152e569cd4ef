"""Whether every value that one schema accepts is accepted by another: proved, refuted, or not decided."""
