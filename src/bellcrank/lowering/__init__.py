"""What stands between a formulation and the code made of it: what a step sees, functions by name, kinds of items."""
