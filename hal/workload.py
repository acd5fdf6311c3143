"""Maps a workload to a grid of workgroups that the device accepts.

A workload `(x, y, z)` counts invocations. Divided by the workgroup size and rounded up, it gives the number of
workgroups. A device limits each dimension of the grid, so a count above a limit is distributed over the others. Kernels
work from the linear workgroup index `x + nx * (y + ny * z)` and guard against excess, so only the product matters.
"""

from .errors import InvalidArgument, Unsupported

Grid = tuple[int, int, int]


def divide(workload: Grid, workgroup_size: Grid) -> Grid:
    """The number of workgroups per dimension that cover the workload."""
    if len(workload) != 3 or min(workload) < 0:
        raise InvalidArgument(f"workload {workload} is not three counts of 0 or more")
    x, y, z = workgroup_size
    return -(-workload[0] // x), -(-workload[1] // y), -(-workload[2] // z)


def fold(groups: Grid, limits: Grid) -> Grid:
    """The same number of workgroups, or slightly more, within the limits. The excess is less than `ny * nz` groups,
    with the least possible `ny` and `nz`. Raises Unsupported if no grid is large enough.
    """
    if groups[0] <= limits[0] and groups[1] <= limits[1] and groups[2] <= limits[2]:
        return groups
    total = groups[0] * groups[1] * groups[2]
    if total == 0:
        return 0, 1, 1
    rows = -(-total // limits[0])
    z = -(-rows // limits[1])
    if z > limits[2]:
        raise Unsupported(f"{total} workgroups exceed the device's limit of {limits[0] * limits[1] * limits[2]}")
    y = -(-rows // z)
    return -(-total // (y * z)), y, z
