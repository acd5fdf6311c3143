"""What the package adds to Orchestrion's tables of device features, executable formats and profiles."""

from orchestrion.schema.profiles import Format, Profile

#: the description of the feature `template.lockstep`; the part before the dot is the package's own name space
LOCKSTEP = "invocations of a workgroup run in lockstep, so that a barrier costs nothing"

#: `confined`: `bytecode.decode` verifies all code, and `lanes.py` bounds every access (`DeviceInfo.verified_formats`)
FORMAT = Format("template-lanes", confined=True, doc="instructions over all invocations of a workgroup at once")

PROFILE = Profile(
    "template", FORMAT.name, "template", "the device of the template", features=frozenset({"template.lockstep"})
)
