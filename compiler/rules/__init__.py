"""The rules that IR satisfies after each phase, beyond each op's own checks: what may stand where, and what must match.

Text of a phase may come from anybody; these rules refuse invalid text before a pass relies on it. `engine.check`
applies them.
"""
