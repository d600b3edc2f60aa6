// What begin_axis_forms.h defines is gone.
#undef RENSA_AXIS_FORM
#undef RENSA_AXIS_AND_KEEPDIMS_FORMS
