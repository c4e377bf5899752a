"""What is computed at a state: the parts of a compiled machine, and functions of them by topic."""
