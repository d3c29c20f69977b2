// OpenMP, whose library torch has loaded already: the kernels run in torch's own threads.
#pragma once

#include <omp.h>

inline int most_threads() { return omp_get_max_threads(); }
inline int this_thread() { return omp_get_thread_num(); }
