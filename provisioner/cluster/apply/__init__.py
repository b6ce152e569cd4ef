"""The writes: an approved plan phase by phase, and what was approved put back where others changed it."""
