"""The files that carry a module to a device: archives, bundles, manifests, deltas."""
