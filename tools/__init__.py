"""The command line: one file per command, thin over the compiler and the runtime."""
