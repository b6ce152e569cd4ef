"""What changes between two versions of a CustomResourceDefinition, and for whom."""
