"""How pages look: by what a reader chose, by what their system asks for, and with nothing to show."""
