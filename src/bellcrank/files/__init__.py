"""Files: read in bounded time and memory, written whole or not at all."""
