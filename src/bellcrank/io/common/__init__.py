"""What the readers and writers of all formats share: XML, names, angles, masses, files written whole."""
