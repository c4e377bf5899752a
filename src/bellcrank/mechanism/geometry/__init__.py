"""What bodies look like and collide with: shapes, colors, and shapes placed on bodies."""
