/* Classifies scikit-learn's digits on a Cortex-M4 with the network of digits.mlir, and prints the accuracy and the
 * instructions of each kernel.
 *
 * The network is digits.c, which vm-codegen writes (Makefile). The program has no operating system: its output goes to
 * the debugger or emulator by semihosting. Instructions are counted by the timer SysTick under `qemu -icount shift=5`:
 * an instruction takes 32 ns and a tick of the board 40 ns. */

#include <stdint.h>
#include <string.h>

#include "digits.h"
#include "test_digits.h"

enum { CLASSES = 10, KERNELS = 16, NS_OF_INSTRUCTION = 32, NS_OF_TICK = 40 };

#define SYSTICK_CONTROL (*(volatile uint32_t *)0xE000E010u)
#define SYSTICK_RELOAD (*(volatile uint32_t *)0xE000E014u)
#define SYSTICK_VALUE (*(volatile uint32_t *)0xE000E018u)
#define TICKS 0xFFFFFFu

extern unsigned char data_source[], data_begin[], data_end[], bss_begin[], bss_end[], stack_top[];

/* A call of the debugger or emulator: https://github.com/ARM-software/abi-aa, "Semihosting". */
static int32_t semihosting(int32_t operation, const void *argument)
{
  register int32_t r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

static void print(const char *text)
{
  (void)semihosting(0x04, text);
}

static void print_number(uint32_t number)
{
  char digits[11];
  char *at = digits + sizeof digits - 1;
  *at = 0;
  do {
    *--at = (char)('0' + number % 10);
    number /= 10;
  } while (number);
  print(at);
}

static void finish(int status)
{
  const uint32_t block[2] = {0x20026, (uint32_t)status};
  (void)semihosting(0x20, block);
  for (;;) {
  }
}

/* Ticks of each kernel, in the order of their first calls. */
static struct {
  const char *kernel;
  uint32_t ticks;
} counted[KERNELS];
static uint32_t begin;

/* vm-codegen's code calls this around each kernel: -Ddigits_TRACE=count. */
void count(const char *kernel, int ends)
{
  const uint32_t now = SYSTICK_VALUE;
  int at = 0;
  if (!ends) {
    begin = now;
    return;
  }
  while (at < KERNELS - 1 && counted[at].kernel != NULL && strcmp(counted[at].kernel, kernel) != 0)
    ++at;
  counted[at].kernel = kernel;
  counted[at].ticks += (begin - now) & TICKS;
}

static uint32_t instructions(uint32_t ticks)
{
  return (uint32_t)((uint64_t)ticks * NS_OF_TICK / NS_OF_INSTRUCTION);
}

static int largest(const int8_t *scores)
{
  int best = 0, i;
  for (i = 1; i < CLASSES; ++i)
    best = scores[i] > scores[best] ? i : best;
  return best;
}

int main(void)
{
  static unsigned char memory[digits_MEMORY_BYTES] __attribute__((aligned(digits_ALIGNMENT)));
  static int8_t scores[CLASSES];
  digits_inputs inputs;
  digits_outputs outputs;
  digits_context context;
  uint32_t right = 0, ticks = 0, start;
  int i, status;
  SYSTICK_RELOAD = TICKS;
  SYSTICK_VALUE = 0;
  SYSTICK_CONTROL = 5;
  outputs.result0.data = scores;
  status = digits_init(&context, memory, sizeof memory, NULL);
  for (i = 0; i < TEST_DIGITS && status == digits_OK; ++i) {
    inputs.arg0.data = test_images[i];
    start = SYSTICK_VALUE;
    status = digits_run(&context, &inputs, &outputs);
    ticks += (start - SYSTICK_VALUE) & TICKS;
    right += largest(scores) == test_classes[i];
  }
  if (status != digits_OK) {
    print(digits_error_text(status));
    print("\n");
    return 1;
  }
  for (i = 0; i < KERNELS && counted[i].kernel != NULL; ++i) {
    print(counted[i].kernel);
    print(": ");
    print_number(instructions(counted[i].ticks / TEST_DIGITS));
    print(" instructions\n");
  }
  print("digit: ");
  print_number(instructions(ticks / TEST_DIGITS));
  print(" instructions\nright: ");
  print_number(right);
  print(" of ");
  print_number(TEST_DIGITS);
  print("\n");
  digits_fini(&context);
  return 0;
}

void start(void)
{
  memcpy(data_begin, data_source, (size_t)(data_end - data_begin));
  memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
  finish(main());
}

static void fault(void)
{
  print("fault\n");
  finish(2);
}

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
  stack_top, (const void *)start, (const void *)fault, (const void *)fault,
};
