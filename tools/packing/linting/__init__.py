"""The criteria of `vm-pack lint`: rules as rows, profiles of stores, the page for a reviewer."""
