// What begin_reduction_functors.h has begun ends.
#undef RENSA_REDUCTION
