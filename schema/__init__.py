"""What compiler and runtime share: the module file, element types, opcodes, scalar ops."""
