/* The kernels for any processor. */
#include "kernels.h"

#define KERNELS kernels_baseline
#include "bodies.h"
