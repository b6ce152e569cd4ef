"""One command a file, found by Django by its name."""
