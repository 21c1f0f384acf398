"""What linkwatch does, one verb a file: each reads like the list of its steps and knows only ports and domain."""
