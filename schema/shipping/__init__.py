"""The files around a module on its way to a device: archives, bundles, manifests, deltas."""
