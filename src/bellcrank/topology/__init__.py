"""From a description to the immutable tree of links: cuts, link frames, loops."""
