"""What `vm-pack lint` judges by: rules as rows, profiles of stores, the page for a reviewer."""
