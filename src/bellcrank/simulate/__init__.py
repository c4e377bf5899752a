"""Motion over time: steppers, runs, and what they leave behind."""
