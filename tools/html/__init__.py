"""`vm-dump --html`: a module as one page for a browser. It needs no network, and nothing of the module runs."""
