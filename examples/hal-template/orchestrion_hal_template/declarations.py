"""What the package adds to Orchestrion's tables."""

from orchestrion.schema.profiles import Format, Profile

#: a feature of devices; the part before the dot is the package's own
LOCKSTEP = "invocations of a workgroup run in lockstep, so that a barrier costs nothing"

#: `confined`: `bytecode.decode` verifies all code, and `lanes.py` bounds every access (`DeviceInfo.verified_formats`)
FORMAT = Format("template-lanes", confined=True, doc="instructions over all invocations of a workgroup at once")

PROFILE = Profile(
    "template", FORMAT.name, "template", "the device of the template", features=frozenset({"template.lockstep"})
)
