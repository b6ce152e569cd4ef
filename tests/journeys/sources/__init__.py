"""Where content comes from, and as whom it is read."""
