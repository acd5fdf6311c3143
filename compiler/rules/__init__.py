"""What IR must keep to after each phase, beyond what each op says of itself: what stands where, and what must fit.

Text of a phase may come from anybody; these rules refuse it before a pass relies on it. `engine.check` applies them.
"""
