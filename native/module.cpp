// The module that Python imports.
#include "bindings.hpp"

NB_MODULE(_native, m) {
    m.doc() = "C++ kernels of bmpaudit.";
    bmpaudit::bind_samplers(m);
    bmpaudit::bind_shadow(m);
    bmpaudit::bind_attack(m);
    bmpaudit::bind_estimation(m);
}
