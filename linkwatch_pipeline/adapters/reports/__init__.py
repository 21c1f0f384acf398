"""What the warehouse's weeks say, asked with DuckDB."""
