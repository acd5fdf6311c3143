"""The parts of vm-batch: sources of inputs, workers, outputs."""
