"""The pages of deployments: what runs, whether it is what was approved, and the form of a wish."""
