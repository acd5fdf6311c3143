/* The types of these functions (support.c). */
typedef prefix_range range;

/* SPIR-V of an executable: features that it needs; ranges of words to leave out on a device without the mode that keeps
 * NaN. */
typedef struct {
  const uint32_t *words;
  uint32_t count, executable, features, left_out[6];
} variant;

typedef struct {
  uint32_t bindings, words;
} layout;

typedef struct {
  const char *name;
  uint32_t executable, layout;
} kernel;

/* A recording: its first table and their number, slots and sizes of a table, its first set, and sets of a table. */
typedef struct {
  uint32_t first, count, slots, sizes, first_set, sets;
} recording_row;

typedef struct {
  prefix_context *context;
  prefix_table *table;
  const VkDescriptorSet *sets;
  int status, is_new;
} recorder;
