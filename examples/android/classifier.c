#define _POSIX_C_SOURCE 200112L

#include "classifier.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mlp.h"

#define PUBLIC __attribute__((visibility("default")))

enum { THREADS = 2, BYTES = mlp_MEMORY_BYTES + (THREADS - 1) * mlp_PART_BYTES };

struct classifier {
  mlp_context context;
  void *memory, *weights;
};

typedef struct {
  mlp_task *task;
  void *data;
  size_t part;
} work;

static void *run_part(void *data)
{
  const work *w = (const work *)data;
  w->task(w->data, w->part, w->part + 1);
  return NULL;
}

/* One thread per part but the first, which the caller runs. A part whose thread cannot start runs here, too. */
static void parallel_for(void *user, size_t count, mlp_task *task, void *data)
{
  pthread_t threads[THREADS];
  work works[THREADS];
  int started[THREADS];
  size_t part;
  (void)user;
  for (part = 1; part < count; ++part) {
    works[part].task = task;
    works[part].data = data;
    works[part].part = part;
    started[part] = pthread_create(&threads[part], NULL, run_part, &works[part]) == 0;
  }
  task(data, 0, 1);
  for (part = 1; part < count; ++part) {
    if (started[part])
      pthread_join(threads[part], NULL);
    else
      run_part(&works[part]);
  }
}

/* Maps a file of weights; NULL if that fails or the file has another size. A page is aligned as weights must be. */
static void *mapped(const char *name)
{
  const int file = open(name, O_RDONLY);
  struct stat found;
  void *data = MAP_FAILED;
  if (file < 0)
    return NULL;
  if (fstat(file, &found) == 0 && found.st_size == (off_t)mlp_WEIGHTS_BYTES)
    data = mmap(NULL, mlp_WEIGHTS_BYTES, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  return data == MAP_FAILED ? NULL : data;
}

PUBLIC classifier *classifier_open(const char *weights)
{
  classifier *c = (classifier *)calloc(1, sizeof *c);
  if (c == NULL)
    return NULL;
  c->weights = mapped(weights);
  if (c->weights == NULL || posix_memalign(&c->memory, mlp_ALIGNMENT, BYTES) != 0 ||
      mlp_init(&c->context, c->memory, BYTES, c->weights) != mlp_OK ||
      mlp_use_threads(&c->context, parallel_for, NULL, THREADS) != mlp_OK) {
    classifier_close(c);
    return NULL;
  }
  return c;
}

PUBLIC const char *classifier_run(classifier *c, const float *rows, float *probabilities)
{
  mlp_inputs inputs;
  mlp_outputs outputs;
  int status;
  inputs.x.data = rows;
  outputs.result.data = probabilities;
  status = mlp_run(&c->context, &inputs, &outputs);
  return status == mlp_OK ? NULL : mlp_error_text(status);
}

PUBLIC void classifier_close(classifier *c)
{
  mlp_fini(&c->context);
  free(c->memory);
  if (c->weights != NULL)
    munmap(c->weights, mlp_WEIGHTS_BYTES);
  free(c);
}
