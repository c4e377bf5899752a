"""Bodies, joints and forces, and the immutable tree made of them."""
