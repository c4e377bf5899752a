"""Files that come from others: read in bounded time and memory."""
