"""Parts of vm-batch: where inputs come from, who runs them, where results go."""
