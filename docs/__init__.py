"""The pages of the project, and `docs.generators`, which writes those that are generated. Not part of the package."""
