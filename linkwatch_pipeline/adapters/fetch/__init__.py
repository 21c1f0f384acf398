"""The public-fetch boundary (SPEC 9): which addresses may be dialled, and bounded GETs that dial nothing else."""
