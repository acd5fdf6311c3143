/* The kernels of the conformance suite in OpenCL C. The ABI: the bindings as __global pointers, then one uint per
   parameter word. Kernel i of orchestrion.hal.cts.kernels is found by its name. */

static size_t linear_group(void) {
  return get_group_id(0) + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2));
}

/* c[i] = a[i] + b[i] + value for i < n */
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void add(__global const uint *a, __global const uint *b, __global uint *c, uint n, uint value) {
  size_t i = linear_group() * 64 + get_local_id(0);
  if (i < n) c[i] = a[i] + b[i] + value;
}

/* out[i] = i + value for i < n */
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void iota(__global uint *out, uint n, uint value) {
  size_t i = linear_group();
  if (i < n) out[i] = (uint)i + value;
}

/* data[i] = data[i] + value for i < n */
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void increment(__global uint *data, uint n, uint value) {
  size_t i = linear_group() * 64 + get_local_id(0);
  if (i < n) data[i] += value;
}
