"""What happens to a revision that runs: drift, restore, rollback."""
