// What begin.h has begun ends.
#undef RENSA_UFUNC
#undef RENSA_INTERNAL
#undef RENSA_OBJECT_1
#undef RENSA_OBJECT_2
#undef RENSA_OBJECT_3
