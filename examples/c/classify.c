/* Classifies rows of 32 numbers from standard input with the network of examples/mlp.mlir, eight rows at a time.
 *
 * The network is mlp.c, which vm-codegen writes (Makefile). It needs no memory other than what this file gives it. */

#include <stdio.h>

#include "mlp.h"

enum { ROWS = 8, FEATURES = 32, CLASSES = 10 };

/* Memory of the context, and bytes for its alignment. */
static unsigned char space[mlp_MEMORY_BYTES + mlp_ALIGNMENT];

static int report(int status)
{
  fprintf(stderr, "classify: %s\n", mlp_error_text(status));
  return 1;
}

/* Reads at most ROWS rows; returns how many, or -1 for a row that is not complete. */
static int read_rows(float *rows)
{
  int count;
  for (count = 0; count < ROWS * FEATURES; ++count) {
    const int found = scanf("%f", &rows[count]);
    if (found != 1)
      return found == EOF && count % FEATURES == 0 ? count / FEATURES : -1;
  }
  return ROWS;
}

static void print_classes(const float *probabilities, int rows)
{
  int row, i;
  for (row = 0; row < rows; ++row) {
    const float *p = probabilities + row * CLASSES;
    int best = 0;
    for (i = 1; i < CLASSES; ++i)
      best = p[i] > p[best] ? i : best;
    printf("class %d, probability %.4f\n", best, (double)p[best]);
  }
}

int main(void)
{
  static float rows[ROWS * FEATURES], probabilities[ROWS * CLASSES];
  unsigned char *memory = space + (mlp_ALIGNMENT - (uintptr_t)space % mlp_ALIGNMENT) % mlp_ALIGNMENT;
  mlp_inputs inputs;
  mlp_outputs outputs;
  mlp_context context;
  int status, count;
  inputs.x.data = rows;
  outputs.result.data = probabilities;
  status = mlp_init(&context, memory, mlp_MEMORY_BYTES, NULL);
  if (status != mlp_OK)
    return report(status);
  while ((count = read_rows(rows)) > 0) {
    status = mlp_run(&context, &inputs, &outputs);
    if (status != mlp_OK)
      return report(status);
    print_classes(probabilities, count);
  }
  mlp_fini(&context);
  if (count < 0) {
    fprintf(stderr, "classify: a row has %d numbers\n", FEATURES);
    return 1;
  }
  return 0;
}
