// The public rows of one and two inputs of a table of ops.def that is included next are declared as
// objects. end.h ends this.
#include "rensa/array/ufunc.h"

#define RENSA_OBJECT_1(name) extern const UnaryUfunc name;
#define RENSA_OBJECT_2(name) extern const BinaryUfunc name;
#define RENSA_OBJECT_3(name)
#define RENSA_UFUNC(name, inputs, rule, expression) RENSA_OBJECT_##inputs(name)
#define RENSA_INTERNAL(name, inputs, rule, expression)
