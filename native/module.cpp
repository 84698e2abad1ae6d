// The module that Python imports, once for each instruction set.
#include "bindings.hpp"

NB_MODULE(BMPAUDIT_INSTRUCTION_SET, m) {
    m.doc() = "C++ kernels of bmpaudit, compiled for one instruction set.";
    nanobind::set_leak_warnings(false);  // objects that live until Python ends are no mistake
    bmpaudit::bind_samplers(m);
    bmpaudit::bind_shadow(m);
    bmpaudit::bind_attack(m);
    bmpaudit::bind_scores(m);
    bmpaudit::bind_estimation(m);
}
