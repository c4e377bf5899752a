"""The compiled machine: what a user computes with."""
