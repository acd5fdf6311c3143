/* classify WEIGHTS: reads 8 rows of 32 numbers from standard input, and prints the class of each. */

#include <stdio.h>

#include "classifier.h"

int main(int argc, char **argv)
{
  static float rows[CLASSIFIER_ROWS * CLASSIFIER_FEATURES], found[CLASSIFIER_ROWS * CLASSIFIER_CLASSES];
  classifier *c = argc == 2 ? classifier_open(argv[1]) : NULL;
  const char *error;
  int i, row;
  if (c == NULL) {
    fprintf(stderr, "classify: no file of weights\n");
    return 1;
  }
  for (i = 0; i < CLASSIFIER_ROWS * CLASSIFIER_FEATURES; ++i) {
    if (scanf("%f", &rows[i]) != 1) {
      fprintf(stderr, "classify: number %d is missing\n", i);
      return 1;
    }
  }
  error = classifier_run(c, rows, found);
  if (error != NULL) {
    fprintf(stderr, "classify: %s\n", error);
    return 1;
  }
  for (row = 0; row < CLASSIFIER_ROWS; ++row) {
    const float *p = found + row * CLASSIFIER_CLASSES;
    int best = 0;
    for (i = 1; i < CLASSIFIER_CLASSES; ++i)
      best = p[i] > p[best] ? i : best;
    printf("class %d, probability %.4f\n", best, (double)p[best]);
  }
  classifier_close(c);
  return 0;
}
