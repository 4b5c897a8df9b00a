/* Which instruction sets this processor and its operating system run, by CPUID itself:
 * __builtin_cpu_supports needs a run-time library of the compiler's, and zig's always says no. */
#ifndef HELIOGRAPH_CPU_H
#define HELIOGRAPH_CPU_H

#if defined(__x86_64__)
#include <cpuid.h>

typedef struct {
    int avx2;   /* AVX2, FMA and F16C */
    int avx512; /* those and AVX-512 F, BW, VL, DQ, VNNI and BF16 */
} Cpu;

/* The registers that the operating system saves: bits 1 and 2 for AVX, 5 to 7 for AVX-512. */
static inline unsigned cpu_saved_registers(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static inline Cpu cpu_detect(void) {
    Cpu cpu = {0, 0};
    unsigned a, b, c, d, saved;
    if (!__get_cpuid_count(1, 0, &a, &b, &c, &d)) return cpu;
    unsigned avx = 1u << 28, fma = 1u << 12, f16c = 1u << 29, xsave = 1u << 27;
    if ((c & (avx | fma | f16c | xsave)) != (avx | fma | f16c | xsave)) return cpu;
    saved = cpu_saved_registers();
    if ((saved & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return cpu;
    cpu.avx2 = b >> 5 & 1;
    unsigned f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31, vnni = 1u << 11;
    int wide = (b & (f | dq | bw | vl)) == (f | dq | bw | vl) && (c & vnni);
    if (!cpu.avx2 || !wide || (saved & 0xE0) != 0xE0) return cpu;
    cpu.avx512 = __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
    return cpu;
}
#endif

#endif
