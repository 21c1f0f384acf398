"""Where numbers for machines go."""
