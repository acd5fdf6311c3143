/* Multiplies two vectors with the program of examples/simple_mul.mlir, without a runtime. */

#include <stdio.h>

#include "simple_mul.h"

int main(void)
{
  static const float lhs[] = {1, 2, 3, 4}, rhs[] = {10, 20, 30, 40};
  float product[4];
  simple_mul_inputs inputs;
  simple_mul_outputs outputs;
  simple_mul_context context;
  int status;
  inputs.arg0.data = lhs;
  inputs.arg1.data = rhs;
  outputs.result0.data = product;
  status = simple_mul_init(&context, NULL, 0, NULL);
  if (status == simple_mul_OK)
    status = simple_mul_run(&context, &inputs, &outputs);
  if (status == simple_mul_OK)
    printf("%g %g %g %g\n", (double)product[0], (double)product[1], (double)product[2], (double)product[3]);
  else
    fprintf(stderr, "multiply: %s\n", simple_mul_error_text(status));
  simple_mul_fini(&context);
  return status;
}
