// Which of the libraries of kernels this processor can run. Compiled for the oldest processor there is.
#include <nanobind/nanobind.h>

#include <cstring>

namespace {

// The instruction sets of CMakeLists.txt.
bool supports(const char *instruction_set) {
    if (std::strcmp(instruction_set, "baseline") == 0 || std::strcmp(instruction_set, "tuned") == 0) return true;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                          __builtin_cpu_supports("bmi2");
    if (std::strcmp(instruction_set, "avx2") == 0) return has_avx2;
    if (std::strcmp(instruction_set, "avx512") == 0)
        return has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    return false;
}

}  // namespace

NB_MODULE(cpu, module) {
    module.doc() = "What this processor supports.";
    module.def("supports", &supports, nanobind::arg("instruction_set"), "Whether it can run kernels compiled for this set.");
}
