"""linkwatch: watches the links of an engineering handbook, politely, and tells each owner once."""
