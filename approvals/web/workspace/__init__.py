"""What surrounds the inbox: home with what happened, saved views, and deciding on several requests at once."""
