"""The commands of `vm-pack`, one file each: `add` makes the command's parser, `run` executes it."""
