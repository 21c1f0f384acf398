"""Systems of record."""
