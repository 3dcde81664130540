/* All kernels, once for each variant. */
#include "exact.h"
#include "counts.h"
#include "cells.h"
#include "segments.h"
#include "order.h"
#include "tables.h"
#include "elementary.h"

#define NAME(result, name, arguments) name,
const Kernels KERNELS = {EACH_KERNEL(NAME)};
