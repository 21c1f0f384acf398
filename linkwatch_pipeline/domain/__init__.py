"""Pure rules of linkwatch: values in, values out; no clock, no chance, no input or output."""
