"""The hardware abstraction layer: a validating, counting front over drivers that others can bring."""
