"""Reads handbooks: finds their files and takes the links out of them."""
