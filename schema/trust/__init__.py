"""Trust in files: the user's trust store, publishers' signatures, trust policies."""
