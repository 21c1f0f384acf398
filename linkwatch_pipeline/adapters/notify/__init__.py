"""Ways to hand a mail to a provider."""
