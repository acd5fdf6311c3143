/* Classifies rows of numbers. The library keeps its weights in a file that it maps, and uses threads of its own. */
#ifndef CLASSIFIER_H
#define CLASSIFIER_H

enum { CLASSIFIER_ROWS = 8, CLASSIFIER_FEATURES = 32, CLASSIFIER_CLASSES = 10 };

typedef struct classifier classifier;

/* Opens a classifier; NULL if the file of weights cannot be mapped or there is no memory. */
classifier *classifier_open(const char *weights);

/* Computes the probabilities of the classes of CLASSIFIER_ROWS rows; returns NULL or the text of an error. */
const char *classifier_run(classifier *c, const float *rows, float *probabilities);

void classifier_close(classifier *c);

#endif
