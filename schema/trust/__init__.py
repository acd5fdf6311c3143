"""Who made a file, and whether that counts: the user's trust store, publishers' signatures, trust policies."""
