"""What the API server refuses of pods, wherever their template stands. Source: pkg/apis/core/validation."""

from provisioner.builtin.pods.template import refusals, refusals_of_template

__all__ = ["refusals", "refusals_of_template"]
