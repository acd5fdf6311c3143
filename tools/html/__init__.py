"""`vm-dump --html`: a module as one page that a browser opens, without a network and without running anything of it."""
