"""Parts of `compare_versions.py`: the programs, the processes of the two versions, ratios with their intervals."""
