// Macros that declare, from here to end_axis_forms.h, the forms of a routine whose first keyword is
// `axis`: name(a), name(a, 1), name(a, {0, 1}), name(a, axes, true) and name(a, {.axis = 1, ...}).
// The templates are there for the sake of braces: names in them mean options, and integers axes.
#define RENSA_AXIS_FORM(name, Options)                                            \
  Array name(const Array& a, const Options& options);                             \
  [[nodiscard]] inline Array name(const Array& a) { return name(a, Options{}); }  \
  template <AxisLike T> [[nodiscard]] Array name(const Array& a, const T& axis) { \
    return name(a, Options{.axis = axis});                                        \
  }                                                                               \
  template <std::same_as<int> I>                                                  \
  [[nodiscard]] Array name(const Array& a, std::initializer_list<I> axes) {       \
    return name(a, Options{.axis = Axes(axes)});                                  \
  }
#define RENSA_AXIS_AND_KEEPDIMS_FORMS(name, Options)                                 \
  RENSA_AXIS_FORM(name, Options)                                                     \
  [[nodiscard]] inline Array name(const Array& a, const Axes& axis, bool keepdims) { \
    return name(a, Options{.axis = axis, .keepdims = keepdims});                     \
  }
