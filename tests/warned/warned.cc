// What a compiler warns of: each line that says so, and no other (warned.cmake compiles this file).
#include <rensa/rensa.h>

namespace rensa {

// A guard without a name ends where it begins.
void guards(MemoryHook& hook, const cuda::Stream& stream, Observation& observation) {
  DeviceScope(gpu(0));                            // warned
  DeviceScope{gpu(0)};                            // warned
  UsingConfig(&Config::train, false);             // warned
  no_backprop_mode();                             // warned
  force_backprop_mode();                          // warned
  CopyModeScope{CopyMode::share};                 // warned
  Reporter::Scope(Reporter(), observation);       // warned
  cuda::PoolScope("pool");                        // warned
  cuda::AllocatorScope{cuda::async_allocator()};  // warned
  MemoryHookScope{hook};                          // warned
  cuda::StreamScope{stream};                      // warned
  cuda::ForbidSync();                             // warned
  cuda::AllowSync();                              // warned
  timeline::Range("range");                       // warned
  timeline::record("trace.json");                 // warned
  MemoryLabel("label");                           // warned
  memory_label("label");                          // warned
  DeviceScope named(gpu(0));
  no_backprop_mode also_named;
}

// A new array or variable that nobody takes: the call has done nothing.
void results(const Array& a, Variable v, L::Linear& model) {
  a.reshape({2, 3});  // warned
  a.astype(float32);  // warned
  a.T();              // warned
  a.to(gpu(0));       // warned
  a.to_cpu();         // warned
  a.copy();           // warned
  a.sum();            // warned
  a + a;              // warned
  a - 1;              // warned
  2 < a;              // warned
  -a;                 // warned
  ~a;                 // warned
  a.sum(0);           // warned
  a.take(a);          // warned
  xp::exp(a);         // warned
  xp::add(a, a);      // warned
  xp::zeros({3});     // warned
  xp::sum(a, 0);      // warned
  xp::sort(a);        // warned
  a[0];               // warned
  a[a > 0];           // warned
  v.reshape({2, 3});  // warned
  v.to(gpu(0));       // warned
  v == 1;             // warned
  v* v;               // warned
  1 - v;              // warned
  -v;                 // warned
  F::relu(v);         // warned
  constant(a);        // warned
  model.copy();       // warned
  a.sort();
  a += 1;
  a.fill(0);
  a[0] = 1;
  a[a > 0] = 1;
  a.item<float>();
  v += 1;
  xp::add(a, a, {.out = a});
  xp::sum(a, {.axis = 0, .out = a});
  a.sum({.axis = 0, .out = a});
  model.to(gpu(0));
  model(v);
  optimizers::SGD().update(model, v);
}

}  // namespace rensa
