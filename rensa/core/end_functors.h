// What begin_functors.h has begun ends.
#undef RENSA_UFUNC
#undef RENSA_INTERNAL
#undef RENSA_UFUNC_1
#undef RENSA_UFUNC_2
#undef RENSA_UFUNC_3
