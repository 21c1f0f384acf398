"""The outside world, one family a folder; families never import each other."""
