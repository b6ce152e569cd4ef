"""A report for people: HTML, terminal, pictures, headline."""
