"""What several formulations share: kinematics, reference points, pivots, multipliers."""
