"""What compiler and runtime both read: the module file, element types, opcodes, scalar ops."""
