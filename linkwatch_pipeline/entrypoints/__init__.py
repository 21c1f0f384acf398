"""The ways in: a person at a terminal, and what calls us on AWS."""
