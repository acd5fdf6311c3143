/* Functions and types of which programs of style c have those that they use, with the prefix of their public names for
 * `prefix`. Blank lines separate them; there are none inside of one. */

INLINE int32_t read_i1(const unsigned char *data) { return *data != 0; }

INLINE int32_t read_i32(const unsigned char *data)
{
  int32_t x;
  memcpy(&x, data, sizeof x);
  return x;
}

INLINE void move_bytes(unsigned char *target, const unsigned char *source, int64_t bytes)
{
  if (bytes > 0)
    memmove(target, source, (size_t)bytes);
}

INLINE void set_bytes(unsigned char *data, int x, int64_t bytes)
{
  if (bytes > 0)
    memset(data, x, (size_t)bytes);
}

static void fill_2(unsigned char *data, uint16_t x, int64_t bytes)
{
  int64_t i;
  for (i = 0; i < bytes; i += 2)
    memcpy(data + i, &x, sizeof x);
}

static void fill_4(unsigned char *data, uint32_t x, int64_t bytes)
{
  int64_t i;
  for (i = 0; i < bytes; i += 4)
    memcpy(data + i, &x, sizeof x);
}

static void fill_8(unsigned char *data, uint64_t x, int64_t bytes)
{
  int64_t i;
  for (i = 0; i < bytes; i += 8)
    memcpy(data + i, &x, sizeof x);
}

/* Whether an output has bytes of an input that it may not replace, or of another output. */
static bool overlap(const void *const *data, const int64_t *bytes, const int *may, int inputs, int count)
{
  int i, j;
  for (i = inputs; i < count; ++i) {
    for (j = 0; j < i; ++j) {
      const uintptr_t x = (uintptr_t)data[i], y = (uintptr_t)data[j];
      if (j != may[i - inputs] && x < y + (uintptr_t)bytes[j] && y < x + (uintptr_t)bytes[i])
        return true;
    }
  }
  return false;
}

typedef void function_of_kernel(void *data, unsigned char *scratch, size_t begin, size_t end);
typedef struct {
  function_of_kernel *kernel;
  void *data;
  unsigned char *scratch;
  size_t count, parts;
} dispatched;

/* Runs the workgroups of some parts. Each part has scratch memory of its own. */
static void run_parts(void *data, size_t begin, size_t end)
{
  const dispatched *const d = (const dispatched *)data;
  const size_t each = d->count / d->parts, more = d->count % d->parts;
  for (; begin < end; ++begin) {
    const size_t first = begin * each + (begin < more ? begin : more);
    d->kernel(d->data, d->scratch + begin * prefix_PART_BYTES, first, first + each + (begin < more ? 1 : 0));
  }
}

/* Runs the workgroups of a kernel. */
static void dispatch(const prefix_context *context, function_of_kernel *kernel, void *data, size_t count)
{
  dispatched d;
  d.kernel = kernel;
  d.data = data;
  d.scratch = context->scratch;
  d.count = count;
  d.parts = context->parts < count ? context->parts : count;
  if (d.parts > 1)
    context->parallel_for(context->user, d.parts, run_parts, &d);
  else
    kernel(data, d.scratch, 0, count);
}

/* With -Dprefix_TRACE=FUNCTION, a function of the app is called around each kernel, with 0 and then 1. */
#if defined(prefix_TRACE)
#if defined(__cplusplus)
extern "C"
#endif
void prefix_TRACE(const char *kernel, int ends);
#define launch(context, kernel, data, count) \
  (prefix_TRACE(#kernel, 0), dispatch(context, kernel, data, count), prefix_TRACE(#kernel, 1))
#else
#define launch dispatch
#endif
