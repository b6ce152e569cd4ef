"""What is done for a revision that runs: its health is read, and its drift found and corrected."""
